import { describe, expect, test } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import { names } from '../../../src/domain/event/projection.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import {
  append,
  commandKey,
  createMaster,
  delegate,
  grant,
  ledgerId,
  masterId,
  openLedger,
  revoke,
  supplier,
} from '../commands.ts';
import { Chain } from '../world.ts';
import { type Attempt, type History, type Look, resultOf } from './history.ts';
import { checkHistory } from './history-check.ts';

/** A true history of one client that waits for each answer, and the log that it left. */
function trueHistory(): { log: LedgerEvent[]; attempts: Attempt[]; looks: Look[] } {
  const chain = new Chain();
  const attempts: Attempt[] = [];
  let at = 0;
  const run = (command: Command) => {
    const name = `command ${attempts.length}`;
    const begun = at++;
    try {
      const [event] = chain.run(command);
      if (event === undefined) throw new Error('no event');
      attempts.push({
        name,
        command,
        node: 'a',
        begun,
        ended: at++,
        result: { kind: 'written', outcome: { event } },
      });
    } catch (error) {
      if (!(error instanceof LedgerError)) throw error;
      attempts.push({ name, command, node: 'a', begun, ended: at++, result: resultOf(error) });
    }
  };
  run(openLedger());
  run(createMaster({ commandKeys: [commandKey('master')] }));
  for (let n = 0; n < 4; n++) run(append({ payload: `{"n":${n}}` }));
  run(append({ payload: '{"n":"early"}', actorId: delegate }));
  run(grant({ commandKeys: [commandKey('grant')] }));
  run(append({ payload: '{"n":"granted"}', actorId: delegate }));
  run(revoke({ commandKeys: [commandKey('revoke')] }));
  run(append({ payload: '{"n":"late"}', actorId: delegate }));
  for (let index = 0; index < 3; index++)
    run(append({ payload: `{"lane":${index}}`, lane: { id: 'l', index, previous: index === 0 ? null : index - 1 } }));
  const seqs = chain.events.filter(({ master }) => master !== null).map(({ seq }) => seq);
  const looks = [
    { ledgerId, scope: names.masterEvents(masterId), begun: at++, ended: at++, headSeq: chain.ledger.seq, seqs },
  ];
  return { log: chain.events, attempts, looks };
}

/** The same log with something done to its events before they are sealed into a chain. */
function rebuilt(commands: readonly Command[]): LedgerEvent[] {
  const chain = new Chain();
  for (const command of commands) chain.run(command);
  return chain.events;
}

function check(log: readonly LedgerEvent[], history: History): string {
  return checkHistory(ledgerId, log, history).join('\n');
}

const carriedOut = (attempts: readonly Attempt[]) =>
  attempts.filter(({ result }) => result.kind === 'written').map(({ command }) => command);

describe('the checker of histories', () => {
  test('finds nothing in a correct one', () => {
    const { log, attempts, looks } = trueHistory();
    expect(check(log, { attempts, looks })).toBe('');
    expect(attempts.map(({ result }) => result.kind).filter((kind) => kind === 'refused')).toHaveLength(2);
  });

  test('finds an event dropped from the log', () => {
    const { log, attempts, looks } = trueHistory();
    expect(
      check(
        log.filter(({ seq }) => seq !== 5),
        { attempts, looks },
      ),
    ).toMatch(/missing_event/);
  });

  test('finds an acknowledged event dropped from a rebuilt chain', () => {
    const { attempts, looks } = trueHistory();
    const commands = carriedOut(attempts).filter((command) => !('payload' in command && command.payload === '{"n":2}'));
    expect(check(rebuilt(commands), { attempts, looks })).toMatch(/lost: command 4/);
  });

  test('finds the newest event dropped from a sound log', () => {
    const { log, attempts, looks } = trueHistory();
    const found = check(log.slice(0, -1), { attempts, looks });
    expect(found).toMatch(/lost/);
    expect(found).not.toMatch(/chain/);
  });

  test('finds a command acknowledged with the event of another one', () => {
    const { log, attempts, looks } = trueHistory();
    const [first, second] = [attempts[2], attempts[3]];
    if (first === undefined || second === undefined) throw new Error('too short');
    const found = check(log, { attempts: attempts.with(2, { ...first, result: second.result }), looks });
    expect(found).toMatch(/another's: command 2/);
  });

  test('finds a command written twice in a sound chain', () => {
    const { attempts } = trueHistory();
    const commands = carriedOut(attempts);
    const twice = [...commands, append({ payload: '{"n":1}' })];
    expect(check(rebuilt(twice), { attempts: attempts.map(unclear), looks: [] })).toMatch(/twice: command 3/);
  });

  test('finds two exchanged events', () => {
    const { log, attempts, looks } = trueHistory();
    const [fifth, sixth] = [log[5], log[6]];
    if (fifth === undefined || sixth === undefined) throw new Error('too short');
    expect(check(log.with(5, sixth).with(6, fifth), { attempts, looks })).toMatch(/broken_link/);
  });

  test('finds two commands written in another order than acknowledged', () => {
    const { log, attempts, looks } = trueHistory();
    const [first, second] = [attempts[2], attempts[3]];
    if (first === undefined || second === undefined) throw new Error('too short');
    const swapped = attempts
      .with(2, { ...first, begun: second.begun, ended: second.ended })
      .with(3, { ...second, begun: first.begun, ended: first.ended });
    expect(check(log, { attempts: swapped, looks })).toMatch(/order: command 2/);
  });

  test('finds two events at one seq', () => {
    const { log, attempts, looks } = trueHistory();
    const other = rebuilt([...carriedOut(attempts).slice(0, 5), append({ payload: '{"n":"fork"}' })]).at(-1);
    if (other === undefined) throw new Error('too short');
    const forked = [...log, other].sort((a, b) => a.seq - b.seq);
    expect(check(forked, { attempts, looks })).toMatch(/stands behind one that has its seq/);
  });

  test('finds a rehashed chain with another payload', () => {
    const { attempts, looks } = trueHistory();
    const commands = carriedOut(attempts).map((command) =>
      command.kind === 'append_event' && command.payload === '{"n":0}'
        ? { ...command, causedByHash: 'a'.repeat(64) }
        : command,
    );
    expect(check(rebuilt(commands), { attempts, looks })).toMatch(/changed|lost/);
  });

  test('finds one changed payload', () => {
    const { log, attempts, looks } = trueHistory();
    const event = log[4];
    if (event === undefined) throw new Error('too short');
    expect(check(log.with(4, { ...event, payload: '{"n":99}' }), { attempts, looks })).toMatch(/hash_mismatch/);
  });

  test.each([{ kind: 'not_written', code: 'unavailable' } as const, { kind: 'refused', code: 'not_found' } as const])(
    'finds an event in the log that was answered as $kind',
    (result) => {
      const { log, attempts, looks } = trueHistory();
      const lied = attempts.map((attempt, at) => (at === 4 ? { ...attempt, result } : attempt));
      expect(check(log, { attempts: lied, looks })).toMatch(/refused but there: command 4/);
      const honest = attempts.map((attempt, at) => (at === 4 ? unclear(attempt) : attempt));
      expect(check(log, { attempts: honest, looks })).toBe('');
    },
  );

  test('finds a refused retry of an event in the log', () => {
    const { log, attempts, looks } = trueHistory();
    const [granted, last] = [attempts[8], attempts.at(-1)];
    if (granted === undefined || last === undefined) throw new Error('too short');
    const keyed = { ...unclear(granted), command: { ...granted.command, commandKeys: [commandKey('granted')] } };
    // Its access was revoked meanwhile.
    const again: Attempt = {
      ...keyed,
      begun: (last.ended ?? 0) + 0.1,
      ended: null,
      result: { kind: 'refused', code: 'not_found' },
    };
    expect(check(log, { attempts: [...attempts.with(8, keyed), again], looks })).toMatch(
      /^forgotten: command 8 was told not_found, and stood at seq \d+ when that was asked for$/,
    );
    // Sent a second time before the access was there: the first one may have come behind it.
    const beside = { ...again, begun: attempts[7]?.begun ?? 0 };
    expect(check(log, { attempts: [...attempts.with(8, keyed), beside], looks })).toBe('');
  });

  test('finds a refusal for a state that had ended', () => {
    const { log, attempts, looks } = trueHistory();
    const granted = attempts[8];
    if (granted === undefined) throw new Error('too short');
    const refused: Attempt = {
      ...granted,
      name: 'stale',
      command: append({ payload: '{"n":"stale"}', actorId: delegate }),
      begun: granted.begun + 0.1,
      ended: granted.begun + 0.2,
      result: { kind: 'refused', code: 'not_found' },
    };
    expect(check(log, { attempts: [...attempts, refused], looks })).toMatch(/false refusal: stale/);
    const beside = { ...refused, begun: attempts[7]?.begun ?? 0 };
    expect(check(log, { attempts: [...attempts, beside], looks })).toBe('');
  });

  test('finds an event under a grant that was revoked before it', () => {
    const { log, attempts, looks } = trueHistory();
    const late = attempts[10];
    if (late === undefined) throw new Error('too short');
    const other = append({ payload: '{"n":0}', actorId: delegate });
    const found = check(log, {
      attempts: [
        ...attempts,
        { ...late, name: 'forged', command: other, result: { kind: 'unknown', code: 'internal' } },
      ],
      looks,
    });
    expect(found).toMatch(/rules: forged stands at seq 3, where it was not_found/);
  });

  test('finds a lane with a gap and one out of order', () => {
    const { attempts } = trueHistory();
    const commands = carriedOut(attempts);
    const result = attempts.map(unclear);
    const without = (n: number) =>
      commands.filter((command) => !('payload' in command && command.payload === `{"lane":${n}}`));
    expect(check(rebuilt(without(2)), { attempts: result, looks: [] })).toBe('');
    expect(check(rebuilt(without(1)), { attempts: result, looks: [] })).toMatch(/lane l: .* before it does not/);
    const reversed = [...commands.slice(0, -3), ...commands.slice(-3).reverse()];
    expect(check(rebuilt(reversed), { attempts: result, looks: [] })).toMatch(
      /lane l: .* before the one that it followed/,
    );
  });

  test('finds a lane that continued before a decision, unless a retry was refused', () => {
    const { attempts } = trueHistory();
    const without = carriedOut(attempts).filter(
      (command) => !('payload' in command && command.payload === '{"lane":1}'),
    );
    const gone = attempts.find(({ command }) => 'payload' in command && command.payload === '{"lane":1}');
    const after = attempts.find(({ command }) => 'payload' in command && command.payload === '{"lane":2}');
    if (gone === undefined || after === undefined) throw new Error('too short');
    const log = rebuilt(without);
    const event = log.at(-1);
    if (event === undefined) throw new Error('too short');
    const others = attempts.filter((attempt) => attempt !== gone && attempt !== after).map(unclear);
    const waiting: Attempt = {
      ...gone,
      result: { kind: 'not_written', code: 'unavailable' },
      begun: 1_000,
      ended: 1_001,
    };
    const lanes = (refusedBegun: number) =>
      check(log, {
        attempts: [
          ...others,
          waiting,
          { ...gone, result: { kind: 'refused', code: 'master_closed' }, begun: refusedBegun, ended: refusedBegun + 9 },
          { ...after, result: { kind: 'written', outcome: { event } }, begun: 1_003, ended: 1_005 },
        ],
        looks: [],
      })
        .split('\n')
        .filter((line) => line.startsWith('lane'))
        .join('\n');
    expect(lanes(1_002)).toBe('');
    expect(lanes(1_006)).toMatch(/lane l: .* stood when .* before it was sent again/);
  });

  describe('a lane behind a command with an unknown outcome', () => {
    const { attempts } = trueHistory();
    const others = attempts.filter(({ command }) => !command.lane);
    const inLane = (index: number): Attempt => {
      const found = attempts.find(({ command }) => command.lane?.index === index);
      if (found === undefined) throw new Error('too short');
      return unclear({ ...found, command: { ...found.command, actorId: delegate } });
    };
    const gone = inLane(0);
    const behind = { ...inLane(1), begun: gone.begun };
    const again = grant({ commandKeys: [commandKey('again')] });
    const lanes = (log: readonly LedgerEvent[], more: readonly Attempt[]) =>
      check(log, { attempts: [...others, ...more], looks: [] })
        .split('\n')
        .filter((line) => line.startsWith('lane'))
        .join('\n');
    const granted = rebuilt([...carriedOut(others), again, behind.command]);

    test('may continue behind one that was refused unread while it was under way', () => {
      expect(lanes(granted, [gone, behind])).toBe('');
    });

    test.each<[string, readonly Attempt[]]>([
      ['that was told as not written', [{ ...gone, result: { kind: 'not_written', code: 'unavailable' } }, behind]],
      ['that was never refused', [{ ...gone, command: { ...gone.command, actorId: supplier } }, behind]],
      ['that was told as unknown before it was sent itself', [gone, inLane(1)]],
    ])('may not continue behind one %s', (_, more) => {
      expect(lanes(granted, more)).toMatch(/before it does not/);
    });

    test('may not continue behind one that was refusable only later', () => {
      const log = rebuilt([
        ...carriedOut(others),
        again,
        behind.command,
        revoke({ commandKeys: [commandKey('revoked again')] }),
      ]);
      const event = log.at(-3);
      if (event === undefined) throw new Error('too short');
      const begun = gone.begun - 0.5;
      const result = { kind: 'written', outcome: { event } } as const;
      const allowed: Attempt = { name: 'again', command: again, node: 'a', begun, ended: begun + 0.1, result };
      expect(lanes(log, [allowed, gone, behind])).toMatch(/before it does not/);
    });
  });

  test('finds reads without acknowledged events', () => {
    const { log, attempts, looks } = trueHistory();
    const [look] = looks;
    if (look === undefined) throw new Error('no look');
    expect(check(log, { attempts, looks: [{ ...look, headSeq: look.headSeq - 1 }] })).toMatch(/stale read: the head/);
    expect(check(log, { attempts, looks: [{ ...look, seqs: look.seqs.slice(0, -1) }] })).toMatch(
      /stale read: seq .* is missing/,
    );
    expect(check(log, { attempts, looks: [{ ...look, begun: 0, seqs: [], headSeq: -1 }] })).toBe('');
  });
});

function unclear(attempt: Attempt): Attempt {
  return attempt.result.kind === 'written'
    ? { ...attempt, result: { kind: 'unknown', code: 'outcome_unknown' } }
    : attempt;
}
