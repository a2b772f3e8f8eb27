import { setTimeout as delay } from 'node:timers/promises';
import { refuse } from '../src/cli/refuse.ts';
import { outliveReaders, type StopSignals } from '../src/cli/terminal/stop-signals.ts';
import type { RunningNode } from '../src/node/node-parts.ts';
import type { Environment } from '../src/runtime/config/setting.ts';
import { urlHost } from '../src/runtime/config/url-host.ts';
import { collectWhenIdle } from '../src/runtime/limits/idle-collection.ts';
import { setHeapFlags } from '../src/runtime/limits/node-memory.ts';
import { StartError } from '../src/runtime/start-error.ts';
import { bufferedLines, createLog, type NodeLog } from '../src/runtime/telemetry/log.ts';
import { redaction, secretsIn } from '../src/runtime/telemetry/redaction.ts';
import { orNotAnswering } from '../src/store/cassandra/session/connect.ts';
import { type ClusterConfig, internalWords, readClusterConfig } from './config.ts';
import { checkClusterFiles } from './config-files.ts';
import { startClusterNode } from './start.ts';

/** A stop may take this long, after its configured delay. Then the process exits. */
const stopMaxMs = 19_000;
/** Pause between two attempts to start while the store is not there yet. */
const tryAgainMs = 1_000;

/**
 * Runs a node until `signals` ask for a stop, also during the start. Resolves with its exit code: 1 if it could not
 * start, with a reason on stderr.
 */
export async function serveInCluster(env: Environment, signals: StopSignals): Promise<number> {
  outliveReaders(process);
  const redact = redaction(secretsIn(env));
  let node: RunningNode | null;
  let log: NodeLog;
  try {
    const config = readClusterConfig(env);
    signals.endWithin(config.stopDelayMs + stopMaxMs);
    checkClusterFiles(config, Date.now());
    log = createLog(config.node.logLevel, bufferedLines(1), redact);
    setHeapFlags();
    collectWhenIdle();
    node = await startOnceStoreAnswers(config, log, signals.stopped);
    if (node === null) return 0;
    announce(config, node);
  } catch (error) {
    return refuse(error, internalWords, redact);
  }
  await signals.stopped;
  await node.stop();
  await log.end();
  return 0;
}

/**
 * Starts the node. Waits at most `startWaitMs` for the store. Resolves with null if a stop came first. Rejects with the
 * error of the last attempt.
 */
async function startOnceStoreAnswers(
  config: ClusterConfig,
  log: NodeLog,
  stopped: Promise<void>,
): Promise<RunningNode | null> {
  const deadline = performance.now() + config.startWaitMs;
  let reported = '';
  for (;;) {
    try {
      // After a stop the unfinished start ends with the process: no other node knows of this one yet.
      return await Promise.race([startClusterNode(config, log), stopped.then(() => null)]);
    } catch (failure) {
      const error = orNotAnswering(failure);
      if (!(error instanceof StartError) || performance.now() + tryAgainMs > deadline) throw error;
      if (error.message !== reported) log.warn({}, `waiting: ${error.message}`);
      reported = error.message;
    }
    const isStopped = await Promise.race([stopped.then(() => true), delay(tryAgainMs, false)]);
    if (isStopped) return null;
  }
}

function announce({ node: config, nodeId, cassandra }: ClusterConfig, node: RunningNode): void {
  const scheme = config.tls === null ? 'http' : 'https';
  const lines = [
    `Ledger Trust Service, node ${nodeId}, ${config.mode} mode, data in Cassandra keyspace ${cassandra.keyspace}`,
    `  REST      ${scheme}://${urlHost(node.http.host)}:${node.http.port}/v1`,
    `  gRPC      ${urlHost(node.grpc.host)}:${node.grpc.port}${config.tls === null ? '' : ' (TLS)'}`,
    `  internal  http://${urlHost(node.ops.host)}:${node.ops.port}/cluster`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
