import { type Config, type Environment, readConfig } from '../config.ts';
import { readTls } from '../doors.ts';
import { startEmbedded } from '../embedded.ts';
import { boundHeapGrowth } from '../heap-growth.ts';
import { bufferedLines, createLog } from '../log.ts';
import type { RunningNode } from '../node.ts';
import { redaction, secretsIn } from '../runtime/redaction.ts';
import { urlHost } from '../url-host.ts';
import { refuse } from './refuse.ts';

/** A second signal, or a stop that takes longer than this, ends the process as it is: nothing answered is lost by that. */
const stopMaxMs = 18_000;

/** Runs an embedded node until SIGTERM or SIGINT. Answers the exit code: 0 after a clean stop, 1 with one sentence on stderr. */
export async function serve(env: Environment): Promise<number> {
  let node: RunningNode;
  let broken = false;
  const redact = redaction(secretsIn(env));
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  // Heard from the very start: a node that is told to stop while it starts stops once it has started.
  let signals = 0;
  const hear = () => {
    signals += 1;
    if (signals > 1) process.exit(1);
    stop();
  };
  process.on('SIGTERM', hear).on('SIGINT', hear);
  void stopped.then(() => setTimeout(() => process.exit(1), stopMaxMs).unref());
  try {
    const config = readConfig(env);
    readTls(config, Date.now());
    const log = createLog(config.logLevel, bufferedLines(1), redact);
    boundHeapGrowth();
    node = await startEmbedded(config, log, (error) => {
      broken = true;
      process.stderr.write(redact(`ledger-trust: the disk failed, so the node stops: ${error.message}\n`));
      stop();
    });
    if (signals === 0) announce(config, node);
  } catch (error) {
    return refuse(error, undefined, redact);
  }
  await stopped;
  await node.stop();
  return broken ? 1 : 0;
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
