import { describe, expect, it } from 'vitest';
import { type ActorDocument, type Event, type KeySource, keysFromDocuments } from '../../../../src/client/index.ts';
import { canonicalJson } from '../../../../src/domain/json/canonical.ts';
import { isoTime } from '../../../../src/domain/values/time.ts';
import { append, buyer, closeLedger, grant, masterId, revoke, supplier } from '../../../support/commands.ts';
import { opened } from '../../../support/ledger-kinds.ts';
import { documentOf, relinked, SignedLedger, verifySigned, withLastEvent } from '../../../support/signed-ledgers.ts';
import { startMs } from '../../../support/world.ts';

/** A signed event whose signature the service took off, to change it. */
function stripped(): Event[] {
  const ledger = new SignedLedger('order').append('DELIVERED', { n: 2 });
  return withLastEvent(ledger.events, ({ payload }) => ({
    payload: { ...payload, n: 666 },
    ...{ actorSig: null, signingKeyId: null, actorSigPayload: null },
  }));
}

const noKeys = { actorId: supplier, keys: [] };
const enrolled = (ms: number) => documentOf(supplier, { validFrom: isoTime(startMs + ms) });
const keysOf = (...documents: ActorDocument[]) => keysFromDocuments(documents);

async function incompleteOf(events: readonly Event[], keys: KeySource, trustedKeys: 'all' | 'authority' = 'all') {
  const { issues, incomplete } = await verifySigned(events, { keys, trustedKeys });
  expect(issues).toEqual([]);
  return incomplete.map(({ type, count, eventId }) => [type, count, eventId]);
}

describe('an event that its actor did not sign', () => {
  const events = stripped();
  const { id } = events.at(-1) as Event;
  const signedBefore = events.length - 3;

  it('is invalid if the actor had keys by then', async () => {
    const { issues } = await verifySigned(events, { keys: keysOf(enrolled(-15_000)) });
    expect(issues).toMatchObject([{ eventId: id, type: 'invalid_actor_sig' }]);
  });

  it('is valid if it was sent before the first key was enrolled', async () => {
    const only = relinked(events.slice(0, 2).concat(events.slice(-1)));
    // Its master is not there; signatures are what is looked at.
    const found = await verifySigned(only, { keys: keysOf(enrolled(-14_999)), kind: 'segment' });
    expect(found.issues.filter(({ type }) => type === 'invalid_actor_sig')).toEqual([]);
    expect(found.incomplete.map(({ type }) => type)).not.toContain('actor_keys_untrusted');
  });

  it('is invalid by the first key that has a date, whatever the dates of others', async () => {
    const dated = (...dates: string[]) => ({
      actorId: supplier,
      keys: dates.flatMap((validFrom) => documentOf(supplier, { validFrom }).keys),
    });
    const [before, after] = [isoTime(startMs - 15_000), isoTime(startMs + 15_000)];
    const isInvalid = async (document: ActorDocument) =>
      (await verifySigned(events, { keys: keysOf(document) })).issues.some(
        ({ eventId, type, detail }) =>
          eventId === id && type === 'invalid_actor_sig' && detail.includes('the event must be signed'),
      );
    expect(await isInvalid(dated('no date', after, before))).toBe(true);
    expect(await isInvalid(dated(before, 'no date'))).toBe(true);
    expect(await isInvalid(dated('no date', after))).toBe(false);
    expect(await isInvalid(dated('no date'))).toBe(false);
  });

  it('is checked without reading the dates of all keys again', async () => {
    let reads = 0;
    const [key] = documentOf(supplier).keys;
    const read = Object.defineProperty({ ...key }, 'validFrom', {
      get() {
        reads += 1;
        return isoTime(startMs + 15_000);
      },
    }) as ActorDocument['keys'][number];
    const unsigned = Array.from({ length: 50 }, () => events.at(-1) as Event);
    const keys = keysOf({ actorId: supplier, keys: [read] });
    const { checked } = await verifySigned(unsigned, { keys, kind: 'segment' });
    expect({ events: checked.events, reads }).toEqual({ events: 50, reads: 1 });
  });

  it('is incomplete without the document of the actor', async () => {
    const keys = keysOf(documentOf(buyer));
    expect(signedBefore).toBe(1);
    const first = events.find(({ actorSig }) => actorSig !== null)?.id;
    expect(await incompleteOf(events, keys)).toEqual([['actor_keys_unknown', 2, first]]);
  });

  it('is invalid under the document of another actor', async () => {
    const { issues } = await verifySigned(events, { keys: { document: () => documentOf(buyer) } });
    expect(issues.at(-1)).toMatchObject({ eventId: id, type: 'invalid_actor_sig' });
  });
});

describe('a ledger whose actor has no keys', () => {
  const ledger = new SignedLedger('order');
  const payload = canonicalJson({ ...ledger.injected, n: 1 });
  ledger.chain.run(append({ payload }));
  const bare = { actorSig: null, signingKeyId: null, actorSigPayload: null };
  const events = relinked(ledger.events.map((event) => ({ ...event, ...bare })));
  const [created] = events.filter(({ eventType }) => eventType === 'TRACELEDGER_MASTER_CREATED');

  it('is valid with its document from elsewhere, or with the answer of a resolver that there is no key', async () => {
    expect(await incompleteOf(events, keysOf(noKeys))).toEqual([]);
    const keys = { ...keysOf(noKeys), isResolver: true };
    const found = await verifySigned(events, { keys, trustedKeys: undefined });
    expect(found.incomplete.map(({ type }) => type)).toEqual(['authority_keys_untrusted']);
  });

  it('is incomplete if the document came with the events', async () => {
    expect(await incompleteOf(events, keysOf(noKeys), 'authority')).toEqual([['actor_keys_untrusted', 2, created?.id]]);
  });

  it('is incomplete without the document', async () => {
    expect(await incompleteOf(events, keysOf())).toEqual([['actor_keys_unknown', 2, created?.id]]);
  });
});

describe('a type that needs no signature', () => {
  it('needs no document of its actor', async () => {
    const chain = opened('order');
    chain.run(closeLedger());
    expect(await incompleteOf([] as Event[], keysOf())).toMatchObject([['start_unknown', 0, '']]);
    const ledger = new SignedLedger('order');
    ledger.chain.run(grant({ access: 'read' }));
    ledger.chain.run(revoke());
    ledger.chain.run(closeLedger());
    const found = await verifySigned(ledger.events, { keys: keysOf(documentOf(supplier)) });
    expect(found).toMatchObject({ verdict: 'valid', incomplete: [] });
    const unsigned = ledger.events.filter(({ actorSig }) => actorSig === null);
    expect(unsigned.map(({ eventType }) => eventType)).toContain('LEDGER_CLOSED');
    const without = await verifySigned(ledger.events, { keys: keysOf() });
    expect(without.incomplete).toMatchObject([{ type: 'actor_keys_unknown', count: 1 }]);
    expect(ledger.events.every((event) => event.masterId === null || event.masterId === masterId)).toBe(true);
  });
});
