import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { hearStopSignals, sameRequestMs } from '../../../src/cli/terminal/stop-signals.ts';

function processOf() {
  const emitter = new EventEmitter();
  const exits: number[] = [];
  const signals = hearStopSignals({
    on: (event, heard) => emitter.on(event, heard),
    exit: (code) => void exits.push(code),
  });
  return { signals, exits, send: (signal: 'SIGTERM' | 'SIGINT') => emitter.emit(signal) };
}

describe('stopping a node', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('the first signal requests a stop, and a later one ends the process at once', async () => {
    const { signals, exits, send } = processOf();
    expect(signals.isStopping).toBe(false);
    send('SIGTERM');
    await signals.stopped;
    await vi.advanceTimersByTimeAsync(sameRequestMs + 1);
    expect([signals.isStopping, exits]).toEqual([true, []]);
    send('SIGINT');
    expect(exits).toEqual([1]);
  });

  test('signals within half a second of the first one are the same request', async () => {
    const { exits, send } = processOf();
    send('SIGINT');
    send('SIGINT');
    await vi.advanceTimersByTimeAsync(499);
    send('SIGTERM');
    expect(exits).toEqual([]);
    await vi.advanceTimersByTimeAsync(2);
    send('SIGINT');
    expect(exits).toEqual([1]);
  });

  test('a stop that takes too long ends the process with the exit code of its reason', async () => {
    const { signals, exits, send } = processOf();
    signals.endWithin(10_000);
    signals.exitCode = 74;
    await vi.advanceTimersByTimeAsync(20_000);
    send('SIGINT');
    await vi.advanceTimersByTimeAsync(9_999);
    expect(exits).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(exits).toEqual([74]);
  });

  test('a stop that was requested before its bound is known is bounded too', async () => {
    const { signals, exits, send } = processOf();
    send('SIGTERM');
    await vi.advanceTimersByTimeAsync(5_000);
    signals.endWithin(10_000);
    await vi.advanceTimersByTimeAsync(9_999);
    expect(exits).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(exits).toEqual([1]);
  });

  test('a stop without a signal does not count as the first signal', async () => {
    const { signals, exits, send } = processOf();
    signals.stop();
    await vi.advanceTimersByTimeAsync(sameRequestMs + 1);
    send('SIGTERM');
    expect(exits).toEqual([]);
    await vi.advanceTimersByTimeAsync(sameRequestMs + 1);
    send('SIGTERM');
    expect(exits).toEqual([1]);
  });
});

test('a signal that waited while the thread was busy is the same request', async () => {
  const { exits, send } = processOf();
  send('SIGINT');
  const busyUntil = performance.now() + sameRequestMs + 100;
  // Nothing else runs until then, as in a long collection.
  while (performance.now() < busyUntil);
  process.once('SIGUSR2', () => send('SIGINT'));
  process.kill(process.pid, 'SIGUSR2');
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(exits).toEqual([]);
  send('SIGINT');
  expect(exits).toEqual([1]);
});
