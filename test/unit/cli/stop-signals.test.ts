import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { hearStopSignals } from '../../../src/cli/terminal/stop-signals.ts';

function processOf(maxMs: number) {
  const emitter = new EventEmitter();
  const exits: number[] = [];
  const signals = hearStopSignals(
    { on: (event, heard) => emitter.on(event, heard), exit: (code) => void exits.push(code) },
    maxMs,
  );
  return { signals, exits, send: (signal: 'SIGTERM' | 'SIGINT') => emitter.emit(signal) };
}

describe('stopping a node', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('the first signal requests a stop, and the second one ends the process at once', async () => {
    const { signals, exits, send } = processOf(10_000);
    expect(signals.isStopping).toBe(false);
    send('SIGTERM');
    await signals.stopped;
    expect([signals.isStopping, exits]).toEqual([true, []]);
    send('SIGINT');
    expect(exits).toEqual([1]);
  });

  test('a stop that takes too long ends the process with the exit code of its reason', async () => {
    const { signals, exits, send } = processOf(10_000);
    signals.exitCode = 74;
    send('SIGINT');
    await vi.advanceTimersByTimeAsync(9_999);
    expect(exits).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(exits).toEqual([74]);
  });

  test('a stop without a signal does not count as the first signal', () => {
    const { signals, exits, send } = processOf(10_000);
    signals.stop();
    send('SIGTERM');
    expect(exits).toEqual([]);
    send('SIGTERM');
    expect(exits).toEqual([1]);
  });
});
