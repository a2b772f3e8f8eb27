import { EventEmitter } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { controlConnectionOf } from '../../../../src/store/cassandra/session/control-connection.ts';
import { createClient } from '../../../../src/store/cassandra/session/driver-session.ts';
import { cassandraSettings } from '../../../../src/store/cassandra/session/settings.ts';

/** The part of the driver's control connection that this test replaces. */
interface Played {
  host: unknown;
  connection: unknown;
  _profileManager: unknown;
  _refreshControlConnection(): Promise<void>;
  _refreshHosts(): Promise<void>;
  _registerToConnectionEvents(): Promise<void>;
  _setHealthListeners(host: unknown, connection: unknown): void;
}

const passes = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const node = () => Object.assign(new EventEmitter(), { address: 'a', removeFromPool: () => {} });
const connection = () => Object.assign(new EventEmitter(), { endpoint: 'a', endpointFriendlyName: 'a' });

test('a control connection with two watchers is replaced once when it is lost', async () => {
  const client = createClient(
    cassandraSettings({ CASSANDRA_CONTACT_POINTS: '127.0.0.1:1', CASSANDRA_DATA_CENTER: 'datacenter1' }),
    null,
  );
  const control = controlConnectionOf(client) as unknown as Played;
  const noPlan = (_keyspace: unknown, _options: unknown, found: (error: null, hosts: Iterator<unknown>) => void) =>
    found(null, [].values());
  control._profileManager = { getDefaultLoadBalancing: () => ({ newQueryPlan: noPlan }) };
  let [searches, looks] = [0, 0];
  control._refreshControlConnection = async () => {
    searches += 1;
    await passes(5);
    [control.host, control.connection] = [node(), connection()];
  };
  // The first node that is found is gone again, so the search goes on with the nodes that are left.
  control._refreshHosts = async () => {
    looks += 1;
    const isGone = looks === 1;
    await passes(2);
    if (isGone) throw new Error('the node is gone again');
    await passes(2);
  };
  control._registerToConnectionEvents = () => passes(1);
  /** Until the search has ended: its connection has a watcher. */
  const watched = () =>
    expect
      .poll(() => (control.connection as EventEmitter | null)?.listenerCount('socketClose') ?? 0)
      .toBeGreaterThan(0);
  const rejections: unknown[] = [];
  const note = (error: unknown) => void rejections.push(error);
  process.on('unhandledRejection', note);
  onTestFinished(async () => {
    process.off('unhandledRejection', note);
    await client.shutdown();
  });
  const [first, lost] = [node(), connection()];
  control._setHealthListeners(first, lost);
  control._setHealthListeners(first, lost);
  lost.emit('socketClose');
  await watched();
  await passes(50);
  expect(rejections).toEqual([]);
  expect(searches).toBe(2);
  (control.connection as EventEmitter).emit('socketClose');
  await expect.poll(() => searches).toBe(3);
  await watched();
  expect(searches).toBe(3);
  expect(rejections).toEqual([]);
});
