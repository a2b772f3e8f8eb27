import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { commandSlot, commandWindows, keyText } from '../../src/store/cassandra/keys.ts';
import { Circuit, DeadlinePassed } from '../../src/store/cassandra/session/circuit.ts';
import { KeyedMutex } from '../../src/store/keyed-mutex.ts';

class Gone extends Error {}
class Silent extends Error {}
class Own extends Error {}
const fails = () => Promise.reject(new Gone());
const unavailable = { code: 'unavailable' };

describe('the circuit before Cassandra', () => {
  let circuit: Circuit;
  let reachable = 1;
  beforeEach(() => {
    vi.useFakeTimers();
    reachable = 1;
    circuit = new Circuit(
      (error) => {
        if (error instanceof Silent) return { silentNode: error.message };
        if (error instanceof Own) return 'unknown';
        return error instanceof Gone || error instanceof DeadlinePassed ? 'gone' : 'answered';
      },
      () => reachable,
    );
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  /** An outcome, whatever timers it takes. */
  async function outcome(attempt: () => Promise<unknown>): Promise<unknown> {
    const settled = circuit.run(1_000, attempt).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(150);
    return settled;
  }
  async function open(): Promise<void> {
    for (let failures = 0; failures < 5; failures++) expect(await outcome(fails)).toBeInstanceOf(Gone);
  }

  test('opens after five failures in a row and then sends nothing', async () => {
    await open();
    const attempt = vi.fn(async () => 'sent');
    expect(await outcome(attempt)).toMatchObject(unavailable);
    expect(attempt).not.toHaveBeenCalled();
  });

  test('stays closed if an answer comes in between, also an error of the statement', async () => {
    for (let round = 0; round < 5; round++) {
      for (let failures = 0; failures < 4; failures++) await outcome(fails);
      await outcome(() => Promise.reject(new TypeError('a statement of ours')));
    }
    expect(await outcome(async () => 'sent')).toBe('sent');
  });

  test('sends one probe every half second, and every statement after its answer', async () => {
    await open();
    await vi.advanceTimersByTimeAsync(500);
    let answer: (value: string) => void = () => {};
    const probe = circuit.run(1_000, () => new Promise<string>((resolve) => (answer = resolve)));
    const attempt = vi.fn(async () => 'sent');
    expect(await outcome(attempt)).toMatchObject(unavailable);
    expect(attempt).not.toHaveBeenCalled();
    answer('probe');
    expect(await probe).toBe('probe');
    expect(await outcome(attempt)).toBe('sent');
  });

  test('stays open for another half second after a failed probe', async () => {
    await open();
    for (let round = 0; round < 3; round++) {
      await vi.advanceTimersByTimeAsync(500);
      expect(await outcome(fails)).toBeInstanceOf(Gone);
      expect(await outcome(async () => 'sent')).toMatchObject(unavailable);
    }
  });

  test('stays as it is by an error that shows nothing about Cassandra', async () => {
    const own = () => Promise.reject(new Own());
    for (let failures = 0; failures < 30; failures++) await outcome(own);
    expect(await outcome(async () => 'sent')).toBe('sent');
    for (let failures = 0; failures < 4; failures++) await outcome(fails);
    await outcome(own);
    await outcome(fails);
    expect(await outcome(async () => 'sent')).toMatchObject(unavailable);
  });

  test('sends another probe behind one that shows nothing about Cassandra', async () => {
    await open();
    await vi.advanceTimersByTimeAsync(500);
    expect(await outcome(() => Promise.reject(new Own()))).toBeInstanceOf(Own);
    expect(await outcome(fails)).toBeInstanceOf(Gone);
    expect(await outcome(async () => 'sent')).toMatchObject(unavailable);
  });

  test('stays closed if one node of three is silent, and opens if all three are', async () => {
    reachable = 3;
    const silent = (node: string) => () => Promise.reject(new Silent(node));
    for (let failures = 0; failures < 30; failures++) await outcome(silent('a'));
    expect(await outcome(async () => 'sent')).toBe('sent');
    for (const node of ['a', 'b', 'c', 'a', 'b', 'c', 'a']) await outcome(silent(node));
    expect(await outcome(async () => 'sent')).toMatchObject(unavailable);
  });

  test('delays a refusal, so that a retry loop does not spin', async () => {
    reachable = 0;
    const settled = vi.fn();
    circuit.run(1_000, async () => 'sent').catch(settled);
    await vi.advanceTimersByTimeAsync(50);
    expect(settled).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(100);
    expect(settled).toHaveBeenCalledOnce();
  });

  test('ends each statement at its deadline, and runs at most 4,096 of them', async () => {
    const all = () =>
      Array.from({ length: 4_096 }, () =>
        circuit.run(1_000, () => new Promise(() => {})).catch((error: unknown) => error),
      );
    const hanging = all();
    await expect(circuit.run(1_000, async () => 'sent')).rejects.toMatchObject({ code: 'overloaded' });
    await vi.advanceTimersByTimeAsync(1_000);
    for (const error of await Promise.all(hanging)) expect(error).toBeInstanceOf(DeadlinePassed);
    // None of them is in flight any more: as many are let in again, and refused by the open circuit.
    const refused = all();
    await vi.advanceTimersByTimeAsync(150);
    for (const error of await Promise.all(refused)) expect(error).toMatchObject(unavailable);
  });
});

describe('the mutex of a key', () => {
  test('runs one operation at a time, and a write overtakes each waiting claim once', async () => {
    const mutex = new KeyedMutex(null);
    const done: string[] = [];
    let running = 0;
    const take = (name: string, kind: 'write' | 'rare') =>
      mutex.take('key', kind, async () => {
        expect(++running).toBe(1);
        await new Promise((resolve) => setImmediate(resolve));
        done.push(name);
        running--;
      });
    await Promise.all([
      take('claim 1', 'rare'),
      take('claim 2', 'rare'),
      take('claim 3', 'rare'),
      take('append 1', 'write'),
      take('append 2', 'write'),
    ]);
    expect(done).toEqual(['claim 1', 'append 1', 'claim 2', 'append 2', 'claim 3']);
  });

  test('continues after a failure, and other keys do not wait', async () => {
    const mutex = new KeyedMutex(null);
    const never = mutex.take('a', 'write', () => new Promise(() => {}));
    const failed = mutex.take('b', 'write', () => Promise.reject(new Gone()));
    const after = mutex.take('b', 'write', async () => 'done');
    await expect(failed).rejects.toBeInstanceOf(Gone);
    expect(await after).toBe('done');
    expect(never).toBeInstanceOf(Promise);
  });
});

describe('keys', () => {
  test('of different texts differ, and none is empty or too long', () => {
    const long = 'x'.repeat(100_000);
    const texts = ['', '\0', '\0\0', '\0#', 'a', '\0a', '#', long, `${long}y`, `\0#${keyText(long).slice(2)}`];
    const keys = texts.map(keyText);
    expect(new Set(keys).size).toBe(texts.length);
    for (const key of keys) {
      expect(key).not.toBe('');
      expect(Buffer.byteLength(key)).toBeLessThan(10_000);
    }
    expect(keyText('readable')).toBe('readable');
  });

  test('of a command are looked up in every window of 24 hours, with clocks that differ', () => {
    const hourMs = 60 * 60 * 1000;
    for (let madeHours = 1_000; madeHours < 1_030; madeHours += 0.5)
      for (const ageHours of [0, 0.01, 11.9, 12, 12.1, 23.9, 24])
        for (const skewMinutes of [-4, 0, 4]) {
          const made = madeHours * hourMs;
          const windows = commandWindows(made + ageHours * hourMs + skewMinutes * 60_000);
          expect(windows).toContain(commandSlot('id', false, made));
          expect(windows.length).toBeLessThanOrEqual(4);
        }
  });
});
