import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ClientOrder, newClientOrder, type Transports } from '../support/client-order.ts';
import { type ComposeProject, composeUp, docker, portsOf } from './compose.ts';

let project: ComposeProject;
let transports: Transports;
let order: ClientOrder;

beforeAll(async () => {
  project = await composeUp(`ledger-trust-test-${process.pid}`, 'three');
  transports = await portsOf(project);
});

afterAll(async () => {
  await order?.[Symbol.asyncDispose]();
  await project?.[Symbol.asyncDispose]();
});

/** Appends over REST and gRPC in turn; each on a connection of its own, so that each node gets some. */
async function appendSome(count: number): Promise<void> {
  const uuid = order.masterId;
  for (let n = 0; n < count; n += 1) {
    const client = order.at(transports, n % 2 === 0 ? 'rest' : 'grpc');
    await client.appendEvent({ uuid, eventType: 'NOTED', payload: { n } });
  }
}

test('all three nodes are there, and the schema was made on all of Cassandra', async () => {
  const status = ['node', 'cluster/cli.ts', 'cluster', 'status'];
  const lines = (await docker(['exec', await project.container('node-1'), ...status])).split('\n');
  const serving = lines.filter((line) => / serving /.test(line)).map((line) => line.split(' ')[0]);
  expect(serving.sort()).toEqual(['node-1', 'node-2', 'node-3']);
  expect(await project.compose('logs', 'schema')).toContain('Keyspace ledger_trust is ready');
});

test('the whole story is played through the one address', { timeout: 120_000 }, async () => {
  const story = await (await fetch(`${transports.base}/v1/sandbox/run`)).text();
  expect(story.trim().split('\n').at(-1), story).toMatch(/^[1-9]\d* passed, 0 failed$/);
});

test('events go on through it when a node is killed, and none is lost', { timeout: 120_000 }, async () => {
  order = await newClientOrder(transports);
  await appendSome(10);
  const before = await order.verified(transports);
  await docker(['kill', await project.container('node-2')]);
  await appendSome(20);
  const after = await order.verified(transports);
  expect(after).toEqual({ events: before.events + 20, signatures: before.signatures + 20 });
});

test('a node that comes back takes part again', { timeout: 120_000 }, async () => {
  const container = await project.container('node-2');
  await docker(['start', container]);
  const health = () => docker(['inspect', '--format', '{{.State.Health.Status}}', container]);
  await expect.poll(health, { timeout: 60_000, interval: 500 }).toBe('healthy');
  await appendSome(6);
  await order.verified(transports);
});

test('one of three Cassandras may go', { timeout: 120_000 }, async () => {
  const before = await order.verified(transports);
  await docker(['kill', await project.container('cassandra-3')]);
  await delay(2_000);
  await appendSome(10);
  expect((await order.verified(transports)).events).toBe(before.events + 10);
});

test('neither Redis nor Cassandra nor an internal port is published', async () => {
  for (const service of ['redis', 'cassandra-1', 'cassandra-2', 'node-1', 'node-2']) {
    const ports = await docker(['port', await project.container(service)]);
    expect(ports).toBe('');
  }
});

test('nodes, balancer and Redis run as a user without capabilities, on a root that nobody can write to', async () => {
  const form = '{{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}}';
  for (const [service, user] of [
    ['node-1', 'node'],
    ['balancer', 'node'],
    ['redis', 'redis'],
  ] as const) {
    const found = await docker(['inspect', '--format', form, await project.container(service)]);
    expect(found).toBe(`${user} true [ALL] [no-new-privileges:true]`);
  }
});

test('no secret of the nodes is in what the engine says of them, nor in any log', async () => {
  const node = await project.container('node-1');
  const secrets: string[] = [];
  for (const name of ['cluster.secret', 'secrets.key', 'authority.pem'])
    secrets.push(
      ...(await docker(['exec', node, 'cat', `/keys/${name}`])).split('\n').filter((line) => line.length > 40),
    );
  expect(secrets.length).toBeGreaterThan(2);
  const said = [await docker(['inspect', node]), await project.compose('logs')].join('\n');
  expect(said).toContain('cluster/main.ts');
  for (const secret of secrets) expect(said.includes(secret)).toBe(false);
});

test('nodes stop cleanly, each in seconds', { timeout: 60_000 }, async () => {
  for (const name of ['node-1', 'node-3']) {
    const container = await project.container(name);
    const begun = performance.now();
    await project.compose('stop', name);
    expect(performance.now() - begun).toBeLessThan(15_000);
    expect(await docker(['inspect', '--format', '{{.State.ExitCode}}', container])).toBe('0');
  }
});
