import { describe, expect, test } from 'vitest';
import { contentHash, contentJson, eventHash } from '../../../src/domain/event/content.ts';
import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import { checkChain } from '../../../src/domain/event/integrity.ts';
import { formatRow, parseRow } from '../../../src/domain/event/row.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import { append, createMaster, masterId, openLedger, siblingId } from '../../support/commands.ts';
import { type VectorEvent, vectors } from '../../support/vectors.ts';
import { chainOf } from '../../support/world.ts';

/** The golden chain in the form in which a store holds it. */
function goldenRow(golden: VectorEvent): string {
  const seal = {
    hash: golden.hash,
    prev_hash: golden.prev_hash,
    authority_sig: golden.authority_sig ?? null,
    authority_key_id: golden.authority_key_id ?? null,
    commands: [],
  };
  const signed = golden.actor_sig_payload === null ? '' : canonicalJson(golden.actor_sig_payload);
  return `svc1\n${golden.canonical_content}\n${canonicalJson(golden.payload)}\n${signed}\n${JSON.stringify(seal)}`;
}

const goldenRows = vectors.chain.map(goldenRow);
const golden = goldenRows.map(parseRow);

const whole = { kind: 'ledger', before: null } as const;

function typesAt(events: readonly LedgerEvent[], kind: 'ledger' | 'master' = 'ledger') {
  return checkChain(events, { kind, before: null }).map(({ eventId, type }) => ({ eventId, type }));
}

function at(events: readonly LedgerEvent[], index: number): LedgerEvent {
  const event = events.at(index);
  if (event === undefined) throw new Error(`there is no event ${index}`);
  return event;
}

/** The events with one of them replaced. */
function replaced(events: readonly LedgerEvent[], index: number, by: Partial<LedgerEvent>): LedgerEvent[] {
  return events.map((event, place) => (place === index ? { ...event, ...by } : event));
}

/** An event whose content was changed and whose hashes were made anew, as someone would who has the database. */
function forged(event: LedgerEvent, change: Partial<LedgerEvent>): LedgerEvent {
  const content = { ...event, ...change };
  const hashOfContent = contentHash(contentJson(content));
  return { ...content, contentHash: hashOfContent, hash: eventHash(content.prevHash, hashOfContent) };
}

describe('the golden chain', () => {
  test('is accepted as a whole and from any event on', () => {
    expect(checkChain(golden, whole)).toEqual([]);
    for (let from = 1; from < golden.length; from++) {
      expect(checkChain(golden.slice(from), { kind: 'ledger', before: at(golden, from - 1) })).toEqual([]);
    }
  });

  test('is accepted by master and with filtered events', () => {
    for (const id of new Set(golden.flatMap(({ master }) => (master === null ? [] : [master.id])))) {
      const events = golden.filter(({ master }) => master?.id === id);
      expect(events.length).toBeGreaterThan(1);
      expect(checkChain(events, { kind: 'master', before: null })).toEqual([]);
      expect(checkChain(events.slice(1), { kind: 'master', before: at(events, 0) })).toEqual([]);
    }
    expect(
      checkChain(
        golden.filter((_, index) => index % 3 === 0),
        { kind: 'segment' },
      ),
    ).toEqual([]);
  });
});

describe('a change of a stored event is found', () => {
  const contentFields = Object.keys(JSON.parse(goldenRows[0]?.split('\n')[1] ?? '{}') as object);
  const others = (value: unknown): unknown[] => {
    if (typeof value === 'number') return [value + 1];
    if (typeof value === 'string') return [value === '' ? 'x' : value.slice(0, -1) + (value.endsWith('0') ? '1' : '0')];
    if (value === null) return ['0'.repeat(64)];
    return Object.entries(value as object).flatMap(([key, inside]) =>
      others(inside).map((other) => ({ ...(value as object), [key]: other })),
    );
  };

  test.each(contentFields)('%s', (field) => {
    for (const [index, row] of goldenRows.entries()) {
      const lines = row.split('\n');
      const content = JSON.parse(lines[1] ?? '') as Record<string, unknown>;
      for (const other of others(content[field])) {
        if (field === 'master' && content.master === null) continue;
        lines[1] = canonicalJson({ ...content, [field]: other });
        const event = parseRow(lines.join('\n'));
        const issues = checkChain(replaced(golden, index, event), whole);
        expect(issues).toContainEqual(expect.objectContaining({ eventId: event.id, type: 'hash_mismatch' }));
      }
    }
  });

  test('in the payload', () => {
    for (const [index, event] of golden.entries()) {
      const issues = typesAt(replaced(golden, index, { payload: event.payload.replace('"', ' "') }));
      expect(issues).toEqual([{ eventId: event.id, type: 'hash_mismatch' }]);
    }
  });

  test('in the signed payload, also when it is added or removed', () => {
    for (const [index, event] of golden.entries()) {
      const changes = event.actorSigPayload === null ? ['{}'] : [null, '{}'];
      for (const actorSigPayload of changes) {
        const issues = typesAt(replaced(golden, index, { actorSigPayload }));
        expect(issues).toEqual([{ eventId: event.id, type: 'hash_mismatch' }]);
      }
    }
  });

  test('in the stored hash, at the event and at the link of the next one', () => {
    for (const [index, event] of golden.entries()) {
      const next = golden[index + 1];
      const issues = typesAt(replaced(golden, index, { hash: 'ab'.repeat(32) }));
      const expected = [{ eventId: event.id, type: 'hash_mismatch' }];
      if (next !== undefined) expected.push({ eventId: next.id, type: 'broken_link' });
      expect(issues).toEqual(expected);
    }
  });

  test('in the stored previous hash', () => {
    for (const [index, event] of golden.entries()) {
      const issues = typesAt(replaced(golden, index, { prevHash: 'ab'.repeat(32) }));
      expect(issues).toContainEqual({ eventId: event.id, type: 'hash_mismatch' });
      expect(issues).toContainEqual({ eventId: event.id, type: 'broken_link' });
    }
  });

  test('when a seal is added to a signed event', () => {
    for (const [index, event] of golden.entries()) {
      if (event.actorSig === null) continue;
      for (const seal of [{ authoritySig: 'AAAA' }, { authorityKeyId: 'svc:authority#key-1' }]) {
        expect(typesAt(replaced(golden, index, seal))).toEqual([{ eventId: event.id, type: 'invalid_authority_sig' }]);
      }
    }
  });

  test('when content and hashes are forged together, at the link of the next event', () => {
    for (const [index, event] of golden.entries()) {
      const next = golden[index + 1];
      if (next === undefined) continue;
      const issues = typesAt(replaced(golden, index, forged(event, { actorType: 'human' })));
      expect(issues).toContainEqual({ eventId: next.id, type: 'broken_link' });
      expect(issues).not.toContainEqual(expect.objectContaining({ type: 'hash_mismatch' }));
    }
  });
});

describe('missing, doubled and reordered events', () => {
  test('a removed event is reported as missing before the next one', () => {
    for (const [index] of golden.entries()) {
      const next = golden[index + 1];
      if (next === undefined) continue;
      const left = golden.filter((_, place) => place !== index);
      expect(typesAt(left)).toContainEqual({ eventId: next.id, type: 'missing_event' });
      expect(checkChain(left, { kind: 'segment' })).toEqual([]);
    }
  });

  test('a removed event of a master is reported as missing in the master', () => {
    const events = golden.filter(({ master }) => master?.id === '0193a000-0000-7000-8000-0000000000aa');
    for (let index = 0; index + 1 < events.length; index++) {
      const left = events.filter((_, place) => place !== index);
      expect(typesAt(left, 'master')).toEqual([{ eventId: at(events, index + 1).id, type: 'missing_event' }]);
    }
  });

  test('swapped and doubled events are reported', () => {
    for (let index = 1; index < golden.length; index++) {
      const swapped = golden.with(index, at(golden, index - 1)).with(index - 1, at(golden, index));
      expect(checkChain(swapped, whole)).not.toEqual([]);
      const doubled = golden.toSpliced(index, 0, at(golden, index - 1));
      expect(typesAt(doubled)).toContainEqual({ eventId: at(golden, index - 1).id, type: 'broken_link' });
      expect(checkChain(doubled, { kind: 'segment' })).not.toEqual([]);
    }
  });

  test('a list that does not begin at the first event is reported', () => {
    expect(typesAt(golden.slice(2))).toContainEqual({ eventId: at(golden, 2).id, type: 'missing_event' });
  });

  test('an inserted event with correct hashes breaks the link of the next event', () => {
    const last = at(golden, 3);
    const extra = forged(last, { id: 'x', seq: 4, prevHash: last.hash, master: null });
    const issues = typesAt(golden.toSpliced(4, 0, extra));
    expect(issues).toContainEqual({ eventId: at(golden, 4).id, type: 'broken_link' });
  });

  test('a time that runs back and a GENESIS with a previous hash are broken links', () => {
    const chain = chainOf(openLedger(), createMaster());
    const back = forged(at(chain.events, 2), { createdAt: '2020-01-01T00:00:00.000Z' });
    expect(typesAt(chain.events.with(2, back))).toEqual([{ eventId: back.id, type: 'broken_link' }]);
    const follower = forged(at(chain.events, 0), { prevHash: 'ab'.repeat(32) });
    expect(typesAt([follower])).toEqual([{ eventId: follower.id, type: 'broken_link' }]);
  });
});

describe('links of masters within a ledger', () => {
  const chain = chainOf(openLedger(), createMaster(), createMaster({ masterId: siblingId }), append(), append());

  test('a link to another event of the master is broken', () => {
    const last = at(chain.events, -1);
    const wrong = forged(last, { master: { id: masterId, prevHash: at(chain.events, 3).contentHash, seq: 2 } });
    expect(typesAt(chain.events.with(-1, wrong))).toEqual([{ eventId: wrong.id, type: 'broken_link' }]);
  });

  test('a skipped and a repeated number of a master are reported', () => {
    const last = at(chain.events, -1);
    const prevHash = at(chain.events, -2).contentHash;
    const gap = forged(last, { master: { id: masterId, prevHash, seq: 3 } });
    expect(typesAt(chain.events.with(-1, gap))).toEqual([{ eventId: gap.id, type: 'missing_event' }]);
    const again = forged(last, { master: { id: masterId, prevHash, seq: 1 } });
    expect(typesAt(chain.events.with(-1, again))).toEqual([{ eventId: again.id, type: 'broken_link' }]);
  });

  test('a first event of a master with a previous hash is a broken link', () => {
    const created = at(chain.events, 2);
    const wrong = forged(created, { master: { id: masterId, prevHash: 'ab'.repeat(32), seq: 0 } });
    const issues = typesAt(chain.events.slice(0, 2).concat(wrong));
    expect(issues).toEqual([{ eventId: wrong.id, type: 'broken_link' }]);
  });

  test('the content hash follows from the fields alone', () => {
    for (const event of chain.events) {
      expect(contentHash(contentJson(event))).toBe(event.contentHash);
      expect(parseRow(formatRow(event)).contentHash).toBe(event.contentHash);
    }
  });
});
