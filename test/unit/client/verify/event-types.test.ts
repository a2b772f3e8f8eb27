import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/client/index.ts';
import { SERVICE_EVENT_TYPES } from '../../../../src/domain/values/fields.ts';
import type { Kind } from '../../../support/ledger-kinds.ts';
import { SignedLedger, verifySigned, withLastEvent, withUnsigned } from '../../../support/signed-ledgers.ts';

/** Types that callers may use, each alike to one of the service's own. */
const alike = [
  ...SERVICE_EVENT_TYPES.flatMap((type) => [`${type}_NOTE`, `X_${type}`, `${type}.v2`, type.toLowerCase()]),
  ...['MASTER_', 'TRACELEDGER_MASTER_', 'LEDGER_DELEGATION_', 'MASTER_DELEGATION_', 'SUPPLIER_DELEGATION_ASKED'],
  ...['ORDER_CLOSED', 'DELEGATION_GRANTED', 'constructor', 'hasOwnProperty'],
];

describe('an event whose type only resembles one of the service', () => {
  const kinds: Kind[] = ['order', 'facility root', 'entity root', 'engagement'];
  it.each(kinds)('is one of its author, on a ledger that is an %s', async (kind) => {
    const ledger = new SignedLedger(kind);
    for (const type of alike) ledger.append(type, { note: type, nothing: null });
    const { issues, verdict } = await verifySigned(ledger.events);
    expect(issues).toEqual([]);
    expect(verdict).toBe('valid');
  });

  it('keeps every member that was signed as null', async () => {
    for (const type of ['ORDER_CLOSED', 'X_MASTER_CLOSED', 'LEDGER_CLOSED_NOTE']) {
      const { events } = new SignedLedger('order').append(type, { n: 1, penalty: null });
      const dropped = withLastEvent(events, ({ payload: { penalty: _, ...payload }, payload: signed }) => ({
        payload,
        actorSigPayload: signed,
      }));
      expect((await verifySigned(dropped)).issues, type).toMatchObject([
        { type: 'contradiction', detail: 'payload.penalty is not what the actor signed' },
      ]);
    }
  });

  it('has nothing beside what was signed that only grants have', async () => {
    const { events } = new SignedLedger('order').append('X_DELEGATION_GRANTED', { granted_at: 'x', access: 'read' });
    expect((await verifySigned(events)).verdict).toBe('valid');
    const additions: JsonObject[] = [{ role: 'ACCESS' }, { permissions: { access: 'read' } }];
    for (const added of additions) {
      const { issues } = await verifySigned(withUnsigned(events, added));
      expect(issues).toMatchObject([{ type: 'contradiction', detail: expect.stringContaining('was not signed') }]);
    }
  });
});

describe('a closing', () => {
  it.each(['short', 'long'] as const)('is valid as it was signed, in the %s form', async (form) => {
    for (const kind of ['order', 'facility root', 'entity root', 'engagement'] as const) {
      const { verdict, issues } = await verifySigned(new SignedLedger(kind).closeMaster(form).events);
      expect([verdict, issues], kind).toEqual(['valid', []]);
    }
  });
});
