import { describe, expect, test } from 'vitest';
import { append, createMaster, ledgerId, openLedger } from '../commands.ts';
import { Chain } from '../world.ts';
import type { Attempt, Followed, History, Look, Receipt } from './history.ts';
import { checkHistory } from './history-check.ts';

/** A ledger of nine events, of which the last six were acknowledged one after another, and a follower that got each one. */
function trueHistory() {
  const chain = new Chain();
  let at = 0;
  const attempts: Attempt[] = [];
  const receipts: Receipt[] = [];
  const looks: Look[] = [];
  const follow = () => {
    for (const { seq, hash } of chain.events.slice(receipts.length)) receipts.push({ seq, hash, at: at++ });
  };
  chain.run(openLedger());
  chain.run(createMaster());
  follow();
  for (let n = 0; n < 6; n += 1) {
    const command = append({ payload: `{"n":${n}}` });
    const begun = at++;
    const [event] = chain.run(command);
    if (event === undefined) throw new Error('no event');
    // It is durable before its caller hears of it.
    follow();
    attempts.push({
      ...{ name: `command ${n}`, command, node: 'a', begun, ended: at++ },
      result: { kind: 'written', outcome: { event } },
    });
    const look = { ledgerId, scope: '', begun: at++, ended: at++, headSeq: event.seq, seqs: [] };
    looks.push(look);
  }
  return { log: chain.events, attempts, looks, receipts };
}

const { log, attempts, looks, receipts } = trueHistory();
const newest = log.length - 1;

function check(followed: Partial<Followed>, more: Partial<History> = {}): string {
  const one: Followed = { name: 'reader', ledgerId, after: -1, receipts, ...followed };
  return checkHistory(ledgerId, log, { attempts, looks: [], followed: [one], ...more }).join('\n');
}

const at = (seq: number): Receipt => {
  const receipt = receipts[seq];
  if (receipt === undefined) throw new Error('too short');
  return receipt;
};

describe('the check of what followers were sent', () => {
  test('finds nothing where each event came once and in order, from the first one or from a later one', () => {
    expect(check({}, { looks })).toBe('');
    expect(check({ after: 3, receipts: receipts.slice(4) }, { looks })).toBe('');
  });

  test('finds an event that was left out', () => {
    const found = check({ receipts: receipts.filter(({ seq }) => seq !== 5) });
    expect(found).toBe('followed: reader was sent seq 6 behind seq 4');
  });

  test('finds first events that were left out', () => {
    expect(check({ receipts: receipts.slice(1) })).toBe('followed: reader was sent seq 1 behind seq -1');
  });

  test('finds an acknowledged event that never came', () => {
    const found = check({ receipts: receipts.slice(0, -1) });
    expect(found).toBe(
      `followed: reader was sent no event behind seq ${newest - 1}, and seq ${newest} is acknowledged`,
    );
    expect(check({ receipts: [] })).toMatch(/no event behind seq -1/);
  });

  test('finds an event that came twice, at once or behind a later one', () => {
    const again = (behind: number, seq: number) => receipts.toSpliced(behind + 1, 0, { ...at(seq), at: at(behind).at });
    expect(check({ receipts: again(5, 5) })).toBe('followed: reader was sent seq 5 again, behind seq 5');
    expect(check({ receipts: again(6, 4) })).toBe('followed: reader was sent seq 4 again, behind seq 6');
  });

  test('finds an event that was sent before it was certain and is not in the log', () => {
    const lost = { seq: newest + 1, hash: 'a'.repeat(64), at: at(newest).at };
    expect(check({ receipts: [...receipts, lost] })).toBe(
      `followed: reader was sent an event as seq ${newest + 1} that is not in the log`,
    );
  });

  test('finds an event whose place another one took', () => {
    const other = { ...at(4), hash: 'b'.repeat(64) };
    expect(check({ receipts: receipts.with(4, other) })).toBe(
      'followed: reader was sent an event as seq 4 that is not in the log',
    );
  });

  test('finds an event that was sent before a read that does not see it yet', () => {
    const [first] = looks;
    if (first === undefined) throw new Error('too short');
    const early = first.headSeq + 1;
    const receivedAt = (place: number) => receipts.with(early, { ...at(early), at: place });
    const begun = attempts.map((attempt) => ({ ...attempt, begun: 0 }));
    expect(check({ receipts: receivedAt(first.begun - 0.5) }, { attempts: begun, looks })).toContain(
      `followed: reader was sent seq ${early} too early: a later read found the head at seq ${first.headSeq}`,
    );
    // A read that was under way already may not see it.
    expect(check({ receipts: receivedAt(first.begun + 0.5) }, { attempts: begun, looks: [first] })).toBe('');
  });

  test('finds an event that was sent before its command', () => {
    const begun = attempts[2]?.begun ?? 0;
    const seq = attempts[2]?.result.kind === 'written' ? attempts[2].result.outcome.event.seq : -1;
    const found = check({ receipts: receipts.with(seq, { ...at(seq), at: begun - 0.5 }) });
    expect(found).toBe(`followed: reader was sent seq ${seq} too early: its command was sent later`);
  });

  test('looks at the followers of the ledger alone', () => {
    expect(check({ ledgerId: 'another', receipts: [] })).toBe('');
  });
});
