import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { hearStopSignals } from '../../src/cli/terminal/stop-signals.ts';
import { ConfigError, StartError } from '../../src/runtime/start-error.ts';
import type { LocalCluster } from './cluster.ts';

const FAILED = 1;
const USAGE = 2;

interface UpOptions {
  readonly nodes: number;
  readonly cassandra: 1 | 3;
  readonly dir?: string;
}

const stopping = new AbortController();
const { stopped } = hearStopSignals(process);
void stopped.then(() => {
  say('Stopping.');
  stopping.abort();
});

const program = new Command('cluster:local').description('A whole cluster on this machine, for trying and for tests.');
program.exitOverride();
program.addHelpText(
  'after',
  `
Without a command it does what \`up\` does, with the same options: \`npm run cluster:local -- up --help\` lists them.

Environment:
  PORT, GRPC_PORT  ports of the one address (8080, 50051); 0: any free port
  INTERNAL_PORT    of \`balance\`: the internal port of the nodes (9100)
  Other variables of docs/operations.md go to the nodes.`,
);
program
  .command('up', { isDefault: true })
  .description('Start Redis, Cassandra, the nodes, and one address in front of them, until Ctrl-C.')
  .option('--nodes <count>', 'nodes of the service', count(1, 9), 3)
  .option('--cassandra <count>', 'nodes of Cassandra: 1 or 3', oneOrThree, 1)
  .option('--dir <directory>', 'where data stays; without it everything is removed at the end')
  .action(up);
program
  .command('balance')
  .description('One address for nodes that have a host each and the same ports.')
  .argument('<hosts...>', 'hosts of the nodes')
  .action(balance);
program
  .command('keys')
  .description('Make the keys that all nodes share, where they are not there yet.')
  .argument('<directory>')
  .action(async (dir: string) => {
    const { sharedKeys } = await import('./shared-keys.ts');
    sharedKeys(dir);
  });

try {
  await program.parseAsync(process.argv.slice(2), { from: 'user' });
  process.exit();
} catch (error) {
  if (error === stopping.signal.reason) process.exit();
  if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : USAGE);
  const known = error instanceof StartError || error instanceof ConfigError || !(error instanceof Error);
  say(
    `ledger-trust: ${known ? (error instanceof Error ? error.message : String(error)) : error.stack}`,
    process.stderr,
  );
  process.exit(FAILED);
}

async function up(options: UpOptions): Promise<void> {
  const dir = resolve(options.dir ?? mkdtempSync(join(tmpdir(), 'ledger-trust-cluster-')));
  try {
    await mkdir(dir, { recursive: true });
    const { startLocalCluster } = await import('./cluster.ts');
    await using cluster = await startLocalCluster({
      dir,
      nodes: options.nodes,
      cassandraNodes: options.cassandra,
      port: port('PORT', 8080),
      grpcPort: port('GRPC_PORT', 50_051),
      env: process.env,
      tell: say,
      signal: stopping.signal,
    });
    announce(cluster, dir);
    for (const { id, process, logFile } of cluster.nodes)
      void process.ended.then(() => {
        if (!stopping.signal.aborted) say(`${id} has ended; the others go on. Its log: ${logFile}`);
      });
    await stopped;
  } finally {
    if (options.dir === undefined) rmSync(dir, { recursive: true, force: true });
  }
}

function announce({ base, grpcAddress, nodes, env }: LocalCluster, dir: string): void {
  const rows = nodes.map(
    ({ id, base, grpcAddress, internalBase, process }) =>
      `  ${id}    ${base}/v1   gRPC ${grpcAddress}   internal ${internalBase}/cluster   pid ${process.pid}`,
  );
  say(`Ledger Trust Service, ${nodes.length} nodes, data and logs in ${dir}
  REST      ${base}/v1
  docs      ${base}/docs
  gRPC      ${grpcAddress}
${rows.join('\n')}
  Redis     ${env.REDIS_URL}
  Cassandra ${env.CASSANDRA_CONTACT_POINTS}
  try it    curl ${base}/v1/sandbox/run
  look      REDIS_URL=${env.REDIS_URL} npm run --silent ledger-trust -- cluster status
  stop      Ctrl-C`);
}

async function balance(hosts: readonly string[]): Promise<void> {
  const ports = { port: port('PORT', 8080), grpcPort: port('GRPC_PORT', 50_051) };
  const internalPort = port('INTERNAL_PORT', 9100);
  const { startBalancer } = await import('./balancer.ts');
  await using balancer = await startBalancer({ host: process.env.HOST || '0.0.0.0', ...ports });
  for (const host of hosts) balancer.add({ host, ...ports, internalPort });
  say(`One address for ${hosts.join(', ')}: REST on port ${balancer.port}, gRPC on ${balancer.grpcPort}.`);
  await stopped;
}

function port(name: string, otherwise: number): number {
  const value = process.env[name] || String(otherwise);
  if (!/^\d{1,5}$/.test(value) || Number(value) > 65_535)
    throw new ConfigError(`Set ${name} to a port, a whole number from 0 to 65535; it is ${JSON.stringify(value)}.`);
  return Number(value);
}

function count(min: number, max: number): (text: string) => number {
  return (text) => {
    if (/^\d{1,4}$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text);
    throw new InvalidArgumentError(`It is a whole number from ${min} to ${max}.`);
  };
}

function oneOrThree(text: string): 1 | 3 {
  if (text === '1') return 1;
  if (text === '3') return 3;
  throw new InvalidArgumentError('It is 1 or 3.');
}

function say(text: string, to: NodeJS.WritableStream = process.stdout): void {
  to.write(`${text}\n`);
}
