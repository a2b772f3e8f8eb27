import { type Config, readConfig } from '../node/config.ts';
import { startEmbedded } from '../node/embedded.ts';
import { readTls } from '../node/listeners.ts';
import type { RunningNode } from '../node/node-parts.ts';
import type { Environment } from '../runtime/config/setting.ts';
import { urlHost } from '../runtime/config/url-host.ts';
import { collectWhenIdle } from '../runtime/limits/idle-collection.ts';
import { setHeapFlags } from '../runtime/limits/node-memory.ts';
import { bufferedLines, createLog, type NodeLog } from '../runtime/telemetry/log.ts';
import { redaction, secretsIn } from '../runtime/telemetry/redaction.ts';
import { refuse } from './refuse.ts';
import { exitCodes } from './terminal/exit-codes.ts';
import { outliveReaders, type StopSignals } from './terminal/stop-signals.ts';

/** Milliseconds. A stop that takes longer ends the process at once. */
export const stopMaxMs = 18_000;
/**
 * Milliseconds that a node whose disk failed still answers reads: monitors that look every 15 seconds see it, and load
 * balancers send calls elsewhere.
 */
const readOnlyMs = 30_000;

/**
 * Runs an embedded node until `signals` ask for a stop, or until its disk has failed. A node that is stopped while it
 * starts stops once it has started. Resolves with the exit code: 0 after a clean stop, 1 if the node does not start,
 * `writeFailed`.
 */
export async function serve(env: Environment, signals: StopSignals): Promise<number> {
  const redact = redaction(secretsIn(env));
  signals.endWithin(stopMaxMs);
  outliveReaders(process);
  let node: RunningNode;
  let log: NodeLog;
  let code = 0;
  try {
    const config = readConfig(env);
    readTls(config, Date.now());
    log = createLog(config.logLevel, bufferedLines(1), redact);
    setHeapFlags();
    collectWhenIdle();
    node = await startEmbedded(config, log, (error) => {
      code = exitCodes.writeFailed;
      signals.exitCode = code;
      process.stderr.write(redact(`ledger-trust: the disk failed, so the node stops: ${error.message}\n`));
      setTimeout(signals.stop, readOnlyMs).unref();
    });
    if (!signals.isStopping) announce(config, node);
  } catch (error) {
    return refuse(error, undefined, redact);
  }
  await signals.stopped;
  await node.stop();
  await log.end();
  return code;
}

function announce(config: Config, node: RunningNode): void {
  const scheme = config.tls === null ? 'http' : 'https';
  const host = urlHost(config.host === '0.0.0.0' || config.host === '::' ? 'localhost' : config.host);
  const base = `${scheme}://${host}:${node.http.port}`;
  const lines = [
    `Ledger Trust Service, ${config.mode} mode, data in ${config.dataDir}`,
    `  REST      ${base}/v1`,
    `  docs      ${base}/docs`,
    `  gRPC      ${host}:${node.grpc.port}${config.tls === null ? '' : ' (TLS)'}`,
    `  internal  http://${urlHost(node.ops.host)}:${node.ops.port}/metrics`,
    `  try it    curl ${base}/v1/sandbox/run`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
