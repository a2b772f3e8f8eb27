import type { Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { GrpcPeers } from '../../cluster/peers/grpc-peers.ts';
import { HeadSubscribers } from '../../cluster/peers/head-subscribers.ts';
import { type PeerServiceParts, peerServer } from '../../cluster/peers/peer-service.ts';
import type { PeerSecurity } from '../../cluster/peers/security.ts';
import type { Command } from '../../src/domain/ledger/command.ts';
import { openInternalListener } from '../../src/rpc/internal-listener.ts';
import { MemoryBudget } from '../../src/runtime/limits/memory-budget.ts';
import { createMetrics } from '../../src/runtime/telemetry/metrics.ts';
import { createMaster, openLedger } from './commands.ts';
import { rig, startMs } from './world.ts';

export const secret: PeerSecurity = { tls: null, secret: 'a secret of all the nodes' };

type NodePortOptions = Partial<PeerServiceParts> & { readonly port?: number; readonly onProof?: () => void };

/** The service of node-a. By default it never answers. */
export function newPeerServer(parts: Partial<PeerServiceParts> = {}) {
  return peerServer({
    self: 'node-a',
    security: secret,
    memory: roomyBudget(),
    monotonicMs: () => performance.now(),
    now: () => startMs,
    carryOut: () => new Promise(() => {}),
    checkSignature: async () => {},
    batchesConfirmed: () => 0,
    subscribers: new HeadSubscribers(),
    unreadable: () => {},
    failed: () => {},
    ...parts,
  });
}

/** Opens the internal port of node-a. Default: any free port, and a node that never answers. */
export async function nodePort({ port = 0, onProof = () => {}, ...parts }: NodePortOptions = {}) {
  const server = newPeerServer(parts);
  /** The open connections of other nodes. */
  const connections = new Set<Socket>();
  const transport = await openInternalListener(
    {
      metrics: createMetrics(),
      readiness: async () => ({ ready: true }),
      takeConnection: (socket, proved) => {
        connections.add(socket);
        socket.on('close', () => connections.delete(socket));
        server.takeConnection(socket, () => {
          onProof();
          proved();
        });
      },
    },
    '127.0.0.1',
    port,
  );
  const close = async () => {
    server.close();
    await transport.close(0);
  };
  onTestFinished(close);
  return { port: transport.port, close, connections };
}

function roomyBudget(): MemoryBudget {
  return new MemoryBudget(1024 * 1024 * 1024);
}

/** The peers of node-b. They reach node-a at `where.port`, or not at all. */
export function peersAt(
  where: { port: number | null },
  more: Partial<ConstructorParameters<typeof GrpcPeers>[0]> = {},
) {
  const peers = new GrpcPeers({
    self: 'node-b',
    memory: roomyBudget(),
    security: secret,
    addressOf: (node) => (node !== 'node-a' || where.port === null ? null : `127.0.0.1:${where.port}`),
    monotonicMs: () => performance.now(),
    storeAheadMs: () => 0,
    ownBatches: () => ({ confirmed: 0, running: 0 }),
    meter: { forwarded: () => {} },
    heard: () => {},
    ...more,
  });
  onTestFinished(() => peers[Symbol.asyncDispose]());
  return peers;
}

/** The peers of node-b. They reach node-a at `port`. `results`: what the meter was told. */
export function peersTo(port: number, { security = secret, budgetMs = 1_000, busyPeerBudgetMs = 10_000 } = {}) {
  const results: string[] = [];
  const meter = { forwarded: (result: string) => void results.push(result) };
  const peers = peersAt({ port }, { security, meter, budgetMs, busyPeerBudgetMs });
  return { ask: (command: Command, node = 'node-a') => peers.ask(node, command), results };
}

/** The directory of a node that owns an open ledger with a master. */
export async function openLedgerDirectory() {
  const world = rig();
  const directory = world.directory();
  await directory.submit(openLedger());
  await directory.submit(createMaster());
  return { ...world, directory };
}

/** The internal port of a node that owns an open ledger. `carried`: the commands that it was asked to run. */
export async function ownerPort(options: NodePortOptions = {}) {
  const world = await openLedgerDirectory();
  const carried: Command[] = [];
  const carryOut = (command: Command) => {
    carried.push(command);
    return world.directory.carryOut(command);
  };
  return { ...world, carried, ...(await nodePort({ carryOut, ...options })) };
}

export function failure(outcome: Promise<unknown>): Promise<unknown> {
  return outcome.then(
    () => 'carried out',
    (error: unknown) => error,
  );
}
