import cassandra from 'cassandra-driver';
import { expect, onTestFinished, test, vi } from 'vitest';
import { DeadlinePassed } from '../../../../src/store/cassandra/session/circuit.ts';
import { healthOf, isProgrammerError } from '../../../../src/store/cassandra/session/health.ts';
import { readPages } from '../../../../src/store/cassandra/session/paged-read.ts';

const { errors, types } = cassandra;
const { unavailableException, overloaded, readTimeout, invalid } = types.responseErrorCodes;
const socketClosed = Object.assign(new Error('Socket was closed'), { isSocketError: true });

test.each([
  ['a value that does not fit its column', new RangeError('out of range'), 'unknown'],
  ['a value of another type', new TypeError('Expected Number'), 'unknown'],
  ['an argument that the driver refuses', new errors.ArgumentError('no'), 'unknown'],
  ['any other error', new Error('?'), 'unknown'],
  ['no error', 'thrown', 'unknown'],
  ['a deadline', new DeadlinePassed(1), 'gone'],
  ['no node', new errors.NoHostAvailableError({}), 'gone'],
  ['a closed socket', socketClosed, 'gone'],
  ['a node that is silent', new errors.OperationTimedOutError('slow', '1.2.3.4:9042'), { silentNode: '1.2.3.4:9042' }],
  ['too few replicas', new errors.ResponseError(unavailableException, ''), 'gone'],
  ['an overloaded node', new errors.ResponseError(overloaded, ''), 'gone'],
  ['a timeout of replicas', new errors.ResponseError(readTimeout, ''), 'answered'],
  ['a refused statement', new errors.ResponseError(invalid, ''), 'answered'],
])('what %s shows about Cassandra', (_, error, expected) => {
  expect(healthOf(error)).toEqual(expected);
});

test('an error of the process is not sent again', () => {
  for (const error of [new RangeError(), new TypeError(), new errors.ResponseError(invalid, '')])
    expect(isProgrammerError(error)).toBe(true);
  for (const error of [socketClosed, new DeadlinePassed(1), new errors.ResponseError(readTimeout, '')])
    expect(isProgrammerError(error)).toBe(false);
});

test('a read has the rows of all its pages', async () => {
  const pages = ['a', 'b', null].map((pageState, n) => ({ rows: [{ n }], pageState }));
  const asked: unknown[] = [];
  const read = readPages(async (pageState) => pages[asked.push(pageState) - 1] ?? { rows: [] });
  expect(await read).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }]);
  expect(asked).toEqual([undefined, 'a', 'b']);
});

test('a read ends if the server names a next page for ever', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const endless = async () => {
    await vi.advanceTimersByTimeAsync(1_000);
    return { rows: [], pageState: 'next' };
  };
  const began = Date.now();
  await expect(readPages(endless)).rejects.toMatchObject({ code: 'unavailable' });
  expect(Date.now() - began).toBeLessThan(100_000);
});
