import { describe, expect, it } from 'vitest';
import { actor, answer, authority, events, exported, listOfMaster } from '../../support/export-of-vectors.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';

const { file } = newShell();
const offline = ['--keys', file('keys.json', actor), '--authority', file('authority.json', authority)];

const without = <T>(list: readonly T[], ...indexes: number[]): T[] =>
  list.filter((_, index) => !indexes.includes(index));

let files = 0;
async function verify(content: unknown, ...options: string[]) {
  files += 1;
  const { code, out, err } = await runHere(['verify', file(`events-${files}.json`, content), ...offline, ...options]);
  expect(err).toBe('');
  return { code, out };
}

const segments: [string, unknown, 'ledger' | 'master'][] = [
  ['an answer', { ...answer, events: without(events, 5, 6) }, 'ledger'],
  ['a list', without(events, 5, 6), 'ledger'],
  ['an export that says so', exported(without(events, 5, 6), { kind: 'segment' }), 'ledger'],
  ['an export that does not say what it is', exported(without(events, 5, 6)), 'ledger'],
  ['an answer of a master', { ...listOfMaster, events: without(listOfMaster.events, 1) }, 'master'],
];

describe('a gap', () => {
  it.each(segments)('in %s, which may be a segment, makes it incomplete', async (_, content, kind) => {
    const { code, out } = await verify(content);
    expect(code).toBe(2);
    expect(out).not.toContain('✗');
    const told =
      kind === 'ledger' ? '2 events are missing before seq 7' : '1 event of the master is missing before master_seq 2';
    expect(out).toContain(
      `? middle_unknown  ${told}: a segment, or left out; pass --kind ${kind} to insist on a whole ${kind}\n`,
    );
  });

  it.each(segments)('in %s is an issue with --kind', async (_, content, kind) => {
    const { code, out } = await verify(content, '--kind', kind);
    expect(code).toBe(1);
    expect(out).toContain('✗ missing_event');
  });

  it.each(['ledger', 'master'] as const)('in an export of a whole %s is an issue', async (kind) => {
    const list = kind === 'ledger' ? events : listOfMaster.events;
    const whole = await verify(exported(list, { kind }));
    expect(whole.code).toBe(kind === 'ledger' ? 0 : 2);
    expect(whole.out).not.toContain('✗');
    for (const [index, ...options] of [[0], [0, '--kind', kind], [2]] as const) {
      const { code, out } = await verify(exported(without(list, index), { kind }), ...options);
      expect({ code, told: out.includes('✗ missing_event') }).toEqual({ code: 1, told: true });
    }
  });

  it('is reported with the number of gaps', async () => {
    expect((await verify(without(events, 1, 4, 6))).out).toContain(
      '? middle_unknown  3 gaps, the first: 1 event is missing',
    );
    const { incomplete } = JSON.parse((await verify(without(events, 1, 4), '--json')).out);
    expect(incomplete).toContainEqual(expect.objectContaining({ type: 'middle_unknown', count: 2 }));
  });
});

describe('a possible segment', () => {
  it('is valid if nothing is missing', async () => {
    for (const content of [events, answer, exported()]) expect((await verify(content)).code).toBe(0);
  });
});
