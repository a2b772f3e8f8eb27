import { toldTogether } from '../actors/ledger/commit-listener.ts';
import { systemClock } from '../runtime/clock/system-clock.ts';
import { checkCommandSignature } from '../service/actors/command-signature.ts';
import { sealCheck } from '../service/reading/seal-check.ts';
import { apiOf } from './api.ts';
import { readTls } from './listeners.ts';
import type { NodeParts, RunningNode } from './node-parts.ts';
import { startAccessHistory } from './subsystems/accesses.ts';
import { startActors } from './subsystems/actors.ts';
import { openNodeAuthority } from './subsystems/authority.ts';
import { createCalls } from './subsystems/calls.ts';
import { nodeContext } from './subsystems/context.ts';
import { createFollowers, createFollowLimiter, createHeads } from './subsystems/following.ts';
import { startIdentities } from './subsystems/identities.ts';
import { InternalPort } from './subsystems/internal-port.ts';
import { createCheckpoints } from './subsystems/proofs.ts';
import { openPublicPorts } from './subsystems/public-ports.ts';
import { startServing } from './subsystems/serving.ts';
import { startUpkeep } from './subsystems/upkeep.ts';
import { createWebhooks, webhookTargets } from './subsystems/webhooks.ts';
import { watchUnreadable } from './unreadable-records.ts';

/** Makes and starts a node. Calls `close` after the node has stopped, or if it cannot be started. */
export async function startNodeOver(
  close: () => PromiseLike<void>,
  make: () => Promise<NodeParts>,
): Promise<RunningNode> {
  await using opened = new AsyncDisposableStack();
  opened.defer(close);
  const node = await startNode(await make());
  opened.defer(() => node.stop());
  const all = opened.move();
  return { ...node, stop: () => all.disposeAsync() };
}

/** Makes the subsystems of a node and opens its ports. What is made earlier closes later. */
export async function startNode(parts: NodeParts): Promise<RunningNode> {
  const node = nodeContext(parts, {
    runningCalls: () => calls.pipeline.running.size,
    mailboxDepth: () => directory.load().waiting,
    verificationQueue: () => signers.verifying.waiting,
  });
  const { config, log, metrics, membership } = node;
  const { registry } = metrics;

  await using made = new AsyncDisposableStack();
  const internal = made.use(new InternalPort(node));
  made.defer(async () => membership?.close());
  const { authority, secrets, logIdentity } = made.use(await openNodeAuthority(node));
  made.defer(watchUnreadable({ log, registry }));
  const accesses = made.use(startAccessHistory(node));
  const signers = made.use(startIdentities(node));
  const { identities, endings, credentials } = signers;
  const listening: number[] = [];
  const targets = webhookTargets(node, () => listening);
  const webhooks = createWebhooks(node, secrets, targets, (ledgerId) => directory.readBarrier(ledgerId));
  const { checkpoints } = made.use(createCheckpoints(node, logIdentity));
  const heads = made.use(createHeads(node));
  const limiter = createFollowLimiter(node);
  const load = { committed: (_ledgerId: string, entries: readonly unknown[]) => limiter.committed(entries.length) };
  const told = toldTogether(webhooks, checkpoints, heads, load);
  const directory = made.use(startActors(node, authority, endings, told));
  const seals = sealCheck(authority, identities, signers.verifying.verifyRead);
  const followers = made.use(createFollowers(node, heads, seals, checkpoints, limiter));
  const tls = readTls(config, systemClock.now());
  const api = apiOf({
    ...node,
    ...{ identities, endings, directory, authority, logIdentity, followers, seals },
    access: { log: node.access, queue: accesses },
    apiKeys: credentials,
    provenLogs: checkpoints,
    webhooks: { secrets, targets, work: webhooks },
    sandboxRunsWaiting: config.sandboxRunsWaiting,
    sandboxRun: async (signal) => {
      // A run is a client of this node. Most nodes have no runs, so the first one loads the client.
      const { sandboxRun } = await import('./sandbox-run.ts');
      return sandboxRun(node, ports.http, tls?.cert ?? null, signal);
    },
  });
  const calls = createCalls(node, api, credentials, secrets, accesses);

  const ops = await internal.open(authority);
  const ports = await openPublicPorts(node, calls, tls);
  const { http, grpc } = ports;
  listening.push(http.port, grpc.port, ops.port);
  made.use(closedTogether(ports, webhooks, startUpkeep(node)));
  membership?.join(directory, webhooks, registry, { http: http.port, grpc: grpc.port, internal: ops.port }, (command) =>
    checkCommandSignature(identities, command),
  );
  webhooks.start();
  made.use(startServing(node, internal, ports, calls, followers));

  const all = made.move();
  return { http, grpc, ops, stop: () => all.disposeAsync() };
}

function closedTogether(...parts: readonly AsyncDisposable[]): AsyncDisposable {
  return {
    [Symbol.asyncDispose]: async () => {
      await Promise.all(parts.map((part) => part[Symbol.asyncDispose]()));
    },
  };
}
