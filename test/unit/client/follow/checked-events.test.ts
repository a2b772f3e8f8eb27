import { describe, expect, test } from 'vitest';
import type { Event } from '../../../../src/client/index.ts';
import {
  allSeqs,
  behind,
  caughtUpAt,
  headOf,
  ledgerId,
  lost,
  type Message,
  messageOf,
  type Scripted,
  scriptedService,
  wholeLedger,
} from '../../../support/scripted-streams.ts';
import { chain, otherValue, resealed } from '../../../support/vector-chain.ts';

describe('a fault of the service is found', () => {
  const planted = (messages: readonly Message[], end: Scripted['end'] = null) =>
    scriptedService(() => ({ messages, end }));
  const pick = (...seqs: number[]) => seqs.map((seq) => messageOf(chain[seq] as Event));

  test.each([
    ['a skip', [0, 1, 3], [0, 1], 'missing_event'],
    ['a repeat', [0, 1, 1], [0, 1], 'broken_link'],
    ['an older event again', [0, 1, 2, 0], [0, 1, 2], 'broken_link'],
    ['two events in the wrong order', [0, 2, 1], [0], 'missing_event'],
    ['a first event that is not the first', [1, 2], [], 'missing_event'],
  ])('%s', async (_, sent, handedOut, type) => {
    const { code, types, seqs } = await planted(pick(...sent)).follow(wholeLedger);
    expect([code, seqs]).toEqual(['integrity_failed', handedOut]);
    expect(types).toContain(type);
  });

  test('a skip and a repeat across a reconnect', async () => {
    for (const [sent, type] of [
      [pick(3), 'missing_event'],
      [pick(1, 2), 'broken_link'],
    ] as const) {
      const { follow } = scriptedService((_, count) =>
        count === 1 ? { messages: pick(0, 1), end: lost() } : { messages: sent, end: null },
      );
      const { code, types, seqs } = await follow(wholeLedger);
      expect([code, seqs]).toEqual(['integrity_failed', [0, 1]]);
      expect(types).toContain(type);
    }
  });

  test('a history that was written anew behind the last event', async () => {
    const forged = resealed(
      chain.map((event) => (event.seq === 1 ? { ...event, payload: { ...event.payload, note: 'x' } } : event)),
      1,
    );
    const { follow } = scriptedService((after, count) =>
      count === 1 ? { messages: pick(0, 1), end: lost() } : { messages: behind(after, forged), end: null },
    );
    const { code, types, seqs } = await follow(wholeLedger);
    expect([code, seqs]).toEqual(['integrity_failed', [0, 1]]);
    expect(types).toContain('hash_mismatch');
    const kept = { ...headOf(forged[1] as Event) };
    const rewritten = await planted([]).follow({ ledgerId, after: kept });
    expect(rewritten).toMatchObject({ code: 'integrity_failed', types: ['broken_link'] });
  });

  test.each(['hash', 'contentHash', 'payload', 'actorSig', 'createdAt'] as const)('a changed %s', async (name) => {
    const signed = chain.findIndex(({ actorSig }) => actorSig !== null);
    const changed = chain.map((event, at) =>
      at === signed ? { ...event, [name]: otherValue(name, event[name]) } : event,
    );
    const { code, seqs } = await planted(changed.map(messageOf)).follow(wholeLedger);
    expect([code, seqs]).toEqual(['integrity_failed', allSeqs.slice(0, signed)]);
  });

  test('what the service itself reports', async () => {
    const issues = [{ eventId: 'e', type: 'invalid_authority_sig', detail: 'd' }];
    const [first] = pick(0);
    const bad = { kind: 'event', value: { event: chain[0], integrity: { verified: false, issues } } } as typeof first;
    expect(await planted(bad === undefined ? [] : [bad]).follow(wholeLedger)).toMatchObject({
      code: 'integrity_failed',
      types: ['invalid_authority_sig'],
    });
  });

  test('a head with another hash than the event of this seq', async () => {
    const other = { ...(chain[1] as Event), hash: '0'.repeat(64) };
    expect(await planted([...pick(0, 1), caughtUpAt(other)]).follow(wholeLedger)).toMatchObject({
      seqs: [0, 1],
      heads: [],
      code: 'integrity_failed',
    });
  });

  test('a head beyond the events that came, where the service says that it has sent all', async () => {
    const told = [...pick(0, 1), caughtUpAt(chain[3] as Event)];
    expect(await planted(told).follow(wholeLedger)).toMatchObject({
      seqs: [0, 1],
      heads: [],
      code: 'integrity_failed',
      types: ['missing_event'],
    });
    const later = { kind: 'heartbeat', value: { head: headOf(chain[3] as Event), checkpoint: null } };
    const { code } = await scriptedService((_, count) => ({
      messages: count === 1 ? [...pick(0, 1), later] : behind(1),
      end: null,
    })).follow(wholeLedger);
    expect(code).toBe(null);
  });

  test('with onIssues the event is handed out all the same, but never twice', async () => {
    const found: string[][] = [];
    const { follow } = scriptedService((_, count) => ({
      messages: count === 1 ? pick(0, 2, 2, 1, 3) : behind(3),
      end: null,
    }));
    const { seqs, code } = await follow(wholeLedger, {
      onIssues: (issues) => void found.push(issues.map(({ type }) => type)),
    });
    expect([seqs, code]).toEqual([[0, 2, ...allSeqs.slice(3)], null]);
    expect(found).toHaveLength(3);
  });
});
