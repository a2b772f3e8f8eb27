import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accessRequests } from '../support/access-calls.ts';
import { type AccessRow, accessRows, type CallerName, callerNames } from '../support/access-matrix.ts';
import {
  type AccessTransport,
  apiMethods,
  grpcTransport,
  hasRest,
  restTransport,
} from '../support/access-transports.ts';
import { type AccessWorld, newAccessWorld } from '../support/access-world.ts';
import { grpcClient } from '../support/grpc-client.ts';
import { isNightly } from '../support/nightly.ts';
import { nodeForTests } from '../support/node-for-tests.ts';

const node = await nodeForTests();

test('the matrix lists every method of the API and no other', () => {
  const listed = new Set(accessRows.map(({ method }) => method));
  expect([...listed].toSorted()).toEqual([...apiMethods.keys()].toSorted());
  expect(Object.keys(accessRequests).toSorted()).toEqual([...apiMethods.keys()].toSorted());
  expect(new Set(accessRows.map(({ name }) => name)).size).toBe(accessRows.length);
});

describe.each(['REST', 'gRPC'] as const)('over %s', (transport) => {
  let world: AccessWorld;
  let call: AccessTransport;
  let close = () => {};

  // A world of its own each: what one transport closes is open for the other.
  beforeAll(async () => {
    world = await newAccessWorld(node.base);
    if (transport === 'REST') {
      call = restTransport(node.base);
      return;
    }
    const client = grpcClient(node.grpcAddress);
    call = grpcTransport(client);
    close = () => client.close();
  });
  afterAll(() => close());

  // Who may call is decided behind the transports: in the ordinary run gRPC gets each method at one kind of ledger, by
  // one caller for each outcome.
  const isWhole = isNightly || transport === 'REST';
  const rows = accessRows.filter(({ method, target }) =>
    transport === 'REST' ? hasRest(method) : isWhole || !hasRest(method) || target === null || target === 'order',
  );
  const callersOf = ({ expected }: AccessRow, at: number): readonly CallerName[] => {
    if (isWhole) return callerNames;
    const turned = [...callerNames.slice(at % callerNames.length), ...callerNames.slice(0, at % callerNames.length)];
    return turned.filter((caller, n) => turned.findIndex((one) => expected[one] === expected[caller]) === n);
  };

  test.each(rows)('$name', async (row) => {
    const make = accessRequests[row.method];
    const callers = callersOf(row, rows.indexOf(row));
    const answers = await Promise.all(
      callers.map(async (caller) => {
        const fields = await make?.({ world, row, caller, succeeds: row.expected[caller] === 'ok' });
        return [caller, await call(row.method, fields ?? {}, world.headers[caller])];
      }),
    );
    expect(Object.fromEntries(answers)).toEqual(
      Object.fromEntries(callers.map((caller) => [caller, row.expected[caller]])),
    );
  });
});
