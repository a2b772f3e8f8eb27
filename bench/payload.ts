/** What a client submits: 500 bytes of JSON. */
export const payloadBytes = 500;
export const benchEventType = 'SHIPMENT_DISPATCHED';

type Payload = { readonly [name: string]: string | number | boolean | null | readonly (string | number)[] };

/** The payload of an event of a run, different for each: what a carrier's system might say of a shipment. */
export function payloadOf(index: number): Payload {
  const fields = {
    shipment: `SHP-${String(index).padStart(9, '0')}`,
    lot: `LOT-2026-${String(index % 9973).padStart(5, '0')}`,
    sku: 'NL-88421-BX',
    quantity: 120 + (index % 80),
    unit: 'PCS',
    gross_weight_kg: 1000.5 + (index % 400),
    inspected: true,
    sealed_at: '2026-11-21T08:15:30.000Z',
    route: ['NLRTM', 'DEHAM', 'PLGDN'],
    readings_c: [4.1, 4.3, 4.2, 4.6, 4.4, 4.5],
    carrier: 'Example Freight BV',
    caused_by_hash: null,
  };
  const without = JSON.stringify({ ...fields, note: '' }).length;
  return { ...fields, note: 'n'.repeat(payloadBytes - without) };
}

/** The index that a payload was made from; null for another's. */
export function indexOf(payload: { readonly [name: string]: unknown }): number | null {
  const { shipment } = payload;
  return typeof shipment === 'string' && /^SHP-\d{9}$/.test(shipment) ? Number(shipment.slice(4)) : null;
}
