import { afterAll, beforeAll, expect, test } from 'vitest';
import { newClientOrder, type Transports } from '../support/client-order.ts';
import { type ComposeProject, composeUp, portsOf } from './compose.ts';

let project: ComposeProject;
let transports: Transports;

beforeAll(async () => {
  project = await composeUp(`ledger-trust-small-${process.pid}`, 'small');
  transports = await portsOf(project);
});

afterAll(() => project?.[Symbol.asyncDispose]());

test('with one Cassandra it comes up ready, and an event is appended and verified', { timeout: 120_000 }, async () => {
  expect(await project.container('cassandra-1')).not.toBe('');
  for (const other of ['cassandra-2', 'cassandra-3']) expect(await project.container(other)).toBe('');
  expect(await project.compose('logs', 'schema-small')).toContain('Keyspace ledger_trust is ready');
  await using order = await newClientOrder(transports);
  const before = await order.verified(transports);
  await order.at(transports, 'rest').appendEvent({ uuid: order.masterId, eventType: 'NOTED', payload: {} });
  expect(await order.verified(transports)).toEqual({ events: before.events + 1, signatures: before.signatures + 1 });
});
