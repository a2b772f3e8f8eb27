import { expect, test } from 'vitest';
import { EventSchema } from '../../../../src/gen/svc/v1/event_pb.ts';
import { ListLedgerEventsResponseSchema } from '../../../../src/gen/svc/v1/ledgers_pb.ts';
import { restJson } from '../../../../src/service/encoding/message-json.ts';
import { eventJsonBytes, eventMessage } from '../../../../src/service/reading/event-message.ts';
import { append, buyer, createMaster, grant, ledgerId, openLedger, signature } from '../../../support/commands.ts';
import { pageOf, storeOf } from '../../../support/event-lists.ts';
import { chainOf } from '../../../support/world.ts';

const source = { kind: 'ledger', ledgerId, scopes: null } as const;
const pageBytesMax = 2 * 1024 * 1024;

test('the bytes of an event are those of its JSON', () => {
  const chain = chainOf(
    openLedger(),
    createMaster(),
    grant(),
    append({ payload: '{"letters":"界\\"\\u0001ü"}', causedByHash: 'a'.repeat(64) }),
    append({ payload: '{"n":1}', actorId: buyer, signature: signature(`svc:x:actor:${buyer}#key-1`, '{"界":1}') }),
  );
  expect(chain.events.at(-1)).toMatchObject({ actorSigPayload: '{"界":1}', authoritySig: null });
  for (const event of chain.events)
    expect(eventJsonBytes(event)).toBe(Buffer.byteLength(restJson(EventSchema, eventMessage(event))));
});

test('a thousand small events are one page', async () => {
  const appends = Array.from({ length: 1_100 }, (_, n) => append({ payload: `{"n":${n}}` }));
  const store = await storeOf(chainOf(openLedger(), createMaster(), ...appends));
  expect((await pageOf(store, source, { limit: 1_000 })).events).toHaveLength(1_000);
});

test.each(['asc', 'desc'])(
  'a page ends before the event that takes its JSON beyond 2 MiB, and not sooner (%s)',
  async (order) => {
    const payloads = Array.from({ length: 700 }, (_, n) => `{"n":${n},"text":"${'界'.repeat(900 + (n % 97))}"}`);
    const appends = payloads.map((payload) => append({ payload }));
    const store = await storeOf(chainOf(openLedger(), createMaster(), ...appends));
    const { events, nextCursor } = await pageOf(store, source, { order });
    const next = await pageOf(store, source, { order, limit: 1, cursor: nextCursor ?? '' });
    const json = (more: typeof events) =>
      restJson(ListLedgerEventsResponseSchema, {
        ledgerId,
        count: events.length,
        integrity: { verified: true, issues: [] },
        events: [...events, ...more].map(eventMessage),
        nextCursor: nextCursor ?? '',
      });
    expect(Buffer.byteLength(json([]))).toBeLessThanOrEqual(pageBytesMax);
    expect(Buffer.byteLength(json(next.events))).toBeGreaterThan(pageBytesMax - 512);
  },
);
