import type { Event } from '../client/event.ts';

/** Copies of a ledger, each tampered with in another way. The verification must find every one. */
export function tampered(history: () => readonly Event[]): { readonly title: string; copy(): Event[] }[] {
  const at = (eventType: string) => history().findIndex((event) => event.eventType === eventType);
  return [
    {
      title: 'a copy with a changed amount',
      copy: () =>
        history().map((event) =>
          event.eventType === 'INVOICE_RAISED' ? { ...event, payload: { ...event.payload, amount: 99_999 } } : event,
        ),
    },
    {
      title: 'a copy with an event left out',
      copy: () => history().filter((_, index) => index !== at('SHIPMENT_DISPATCHED')),
    },
    {
      title: 'a copy with an event put under another actor’s name',
      copy: () =>
        history().map((event) =>
          event.eventType === 'SHIPMENT_DISPATCHED' ? { ...event, actorId: history()[1]?.actorId ?? null } : event,
        ),
    },
    {
      title: 'a copy with two events in the other order',
      copy: () => {
        const events = [...history()];
        const index = at('PRODUCTION_STARTED');
        const [first, second] = [events[index], events[index + 1]];
        if (first !== undefined && second !== undefined) events.splice(index, 2, second, first);
        return events;
      },
    },
  ];
}
