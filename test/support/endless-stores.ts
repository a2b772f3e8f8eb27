import type { LedgerEvent } from '../../src/domain/event/event.ts';
import { names, seqOrder } from '../../src/domain/event/projection.ts';
import { formatRow } from '../../src/domain/event/row.ts';
import { uuidV7 } from '../../src/domain/values/uuid.ts';
import { rootLedgerId } from '../../src/service/entities/entities.ts';
import type { AccessLog } from '../../src/store/access-log.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import type { FindPage, RecordStore, StoredRecord } from '../../src/store/record-store.ts';
import { append, buyer, createMaster, ledgerId, openingFacts, openLedger, supplier } from './commands.ts';
import { chainOf, start, startMs } from './world.ts';

/** Told at each thing that a store is asked for: `page` for many at once, `look` for one. */
export type OnAsk = (kind: 'page' | 'look') => void;

const headSeq = 1_000_000;
const chain = chainOf(openLedger(), createMaster(), append());
const repeated = chain.events.at(-1) as LedgerEvent;
const rowAt = (seq: number) => ({ seq, row: formatRow({ ...repeated, seq }) });
const idAt = (at: number) => uuidV7(startMs, Buffer.from(at.toString(16).padStart(20, '0'), 'hex'));

/** There is no record of this id. */
export const absentId = idAt(0xfff);
/** The only actor that has a signing key. */
export const keyedId = '00000000-0000-7000-8000-0000000000ee';
export const engagementId = '00000000-0000-7000-8000-0000000000e0';
/** All ledgers are alike but for their type. */
const typeOf = (id: string) =>
  id === engagementId ? 'ENGAGEMENT' : id === rootLedgerId(buyer) ? 'ENTITY_ROOT' : 'ORDER';
const ledgerFacts = (id: string) => ({
  ...openingFacts(typeOf(id), { buyerActorId: buyer, supplierActorId: supplier }),
  ledgerId: id,
  genesisHash: repeated.hash,
  createdAt: start,
});
const line = (at: number) => ({
  ledgerId: idAt(at),
  role: 'buyer',
  masterId: idAt(at),
  linkId: idAt(at),
  delegateActorId: idAt(at),
  permissions: '{}',
  grantedAt: start,
  expiresAt: null,
});

function cellOf(key: string): string | null {
  const ledger = names.ledger('');
  if (key.startsWith(ledger)) return JSON.stringify(ledgerFacts(key.slice(ledger.length)));
  const master = names.master('');
  if (key.startsWith(master))
    return JSON.stringify({
      masterId: key.slice(master.length),
      ledgerId,
      scope: 'S',
      businessRef: 'PO-1',
      createdAt: start,
      createdSeq: 0,
    });
  // Each link has ended, so that a list of those that hold looks through all.
  return key.startsWith(names.linkEnded('')) ? JSON.stringify(start) : null;
}

/** A ledger store with endless ledgers, which the buyer and the supplier may read; nobody holds a grant. */
export function endlessLedgers(onAsk: OnAsk): LedgerStore {
  const seqs = (from: number, limit: number, descending = false) =>
    Array.from({ length: limit }, (_, at) => (descending ? from - at : from + at));
  const store: Partial<LedgerStore> = {
    head: async () => {
      onAsk('look');
      return { seq: headSeq, hash: repeated.hash };
    },
    certainHead: async () => {
      onAsk('look');
      return { seq: headSeq, hash: repeated.hash };
    },
    cell: async (key) => {
      onAsk('look');
      const value = cellOf(key);
      return value === null ? null : { version: 0, value };
    },
    read: async (_ledger, from, limit) => {
      onAsk('page');
      return seqs(from, limit).map(rowAt);
    },
    readScope: async (_ledger, _scope, { from = 0, limit, descending }) => {
      onAsk('page');
      return { entries: seqs(from, limit, descending).map(rowAt), missing: [] };
    },
    scopeSeqs: async (_ledger, _scope, { from = 0, limit, descending }) => {
      onAsk('page');
      return seqs(from, limit, descending);
    },
    lines: async (_list, { from, limit, offset = 0 }) => {
      onAsk('page');
      const first = (from === undefined ? 0 : Number(from)) + offset;
      return seqs(first, limit).map((at) => ({ order: seqOrder(at), value: JSON.stringify(line(at)) }));
    },
  };
  return store as LedgerStore;
}

/** Which member of a kind's value is the id of its record. */
const idMembers: Readonly<Record<string, string>> = {
  actor: 'actorId',
  entity: 'actorId',
  api_key: 'hash',
  organization: 'organizationId',
};

const signingKey = {
  kid: `svc:actor:${keyedId}#key-1`,
  publicKey: Buffer.alloc(32, 9).toString('base64'),
  preferred: true,
  validFrom: start,
  createdAt: start,
  revokedAt: null,
  revokedReason: null,
};

/** A record of any kind, with the members of all kinds: what a list of that kind looks at, and never finds. */
const record = (at: number, kind: string, recordId: string) => ({
  ...line(at),
  id: idAt(at),
  actorId: buyer,
  organizationId: idAt(at),
  onboarding: { legal_name: 'a name' },
  entityId: idAt(at),
  entityType: 'DEVICE',
  displayName: 'a name',
  keyId: idAt(at),
  // Before the calls of the tests, of which none is a retry.
  revokedAt: '2026-01-01T00:00:00.000Z',
  createdAt: start,
  keys: [],
  eventTypes: [],
  endedAt: null,
  endedBy: null,
  url: 'https://hooks.example/',
  sealedSecret: 'sealed',
  role: 'PARTICIPANT',
  world: null,
  entity: null,
  developer: null,
  actorType: 'device',
  uniqueId: 'serial',
  ownerActorId: null,
  metadata: '{}',
  trustLevel: 'BASIC',
  requireArl: false,
  arlGateUpdatedAt: null,
  requestId: idAt(at),
  frlLedgerId: idAt(at),
  enriched: {},
  environment: 'sandbox',
  region: null,
  prefix: 'svc_sk_test_',
  name: 'a name',
  [idMembers[kind] ?? 'id']: recordId,
  ...(recordId === keyedId ? { keys: [signingKey] } : {}),
});

/** A record store in which every look-up goes on for ever, and in which nothing is in the way of a write. */
export function endlessRecords(onAsk: OnAsk): RecordStore {
  const written = new Map<string, StoredRecord>();
  const store: Partial<RecordStore> = {
    get: async (kind, id) => {
      onAsk('look');
      const own = written.get(`${kind}|${id}`);
      if (own !== undefined) return own;
      if (id === absentId) return null;
      return { kind, id, version: '1', value: JSON.stringify(record(0, kind, id)) };
    },
    find: async (kind, _lookup, { limit, offset = 0, after }: FindPage) => {
      onAsk(limit === 1 ? 'look' : 'page');
      const last = Number(after?.id ?? -1);
      const first = (Number.isNaN(last) ? 0 : last + 1) + offset;
      return Array.from({ length: limit }, (_, at) => {
        const id = String(first + at);
        const value = JSON.stringify(record(first + at, kind, id));
        // A delivery block says in its order how many deliveries it has.
        return { kind, id, version: '1', order: `${start}|1`, value };
      });
    },
    put: async ({ kind, id, value }) => {
      written.set(`${kind}|${id}`, { kind, id, version: '2', value });
      return { ok: true, version: '2' };
    },
  };
  return store as RecordStore;
}

/** An access log that looks for ever, until its signal ends. */
export function endlessAccesses(onAsk: OnAsk): AccessLog {
  const log: Partial<AccessLog> = {
    list: async (_actor, _page, reading) => {
      for (;;) {
        onAsk('page');
        await new Promise((resolve) => void setImmediate(resolve));
        reading?.signal.throwIfAborted();
      }
    },
  };
  return log as AccessLog;
}
