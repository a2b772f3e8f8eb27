import { expect, onTestFinished, test, vi } from 'vitest';
import { Circuit } from '../../../../src/store/cassandra/session/circuit.ts';

class Gone extends Error {}

test('a probe that shows nothing does not close a circuit that a statement in flight has opened again', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const circuit = new Circuit(
    (error) => (error instanceof Gone ? 'gone' : 'unknown'),
    () => 1,
  );
  const begin = () => {
    const { promise, reject } = Promise.withResolvers<string>();
    return { fail: reject, ended: circuit.run(60_000, () => promise).catch((error: unknown) => error) };
  };
  const first = begin();
  for (let failures = 0; failures < 5; failures++)
    await expect(circuit.run(60_000, () => Promise.reject(new Gone()))).rejects.toBeInstanceOf(Gone);
  await vi.advanceTimersByTimeAsync(500);
  const probe = begin();
  first.fail(new Gone());
  await first.ended;
  probe.fail(new Error('of this process'));
  await probe.ended;
  const attempt = vi.fn(async () => 'sent');
  const refused = circuit.run(60_000, attempt).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(100);
  expect(await refused).toMatchObject({ code: 'unavailable' });
  expect(attempt).not.toHaveBeenCalled();
  // Half a second after it was opened again, the next probe is sent.
  await vi.advanceTimersByTimeAsync(500);
  expect(await circuit.run(60_000, attempt)).toBe('sent');
});
