import type { Command } from 'commander';
import { shardOf } from '../../src/actors/routing/shard.ts';
import { addLogCommands } from '../../src/cli/commands/log-arguments.ts';
import { isUuid } from '../../src/domain/values/uuid-form.ts';
import type { Environment } from '../../src/runtime/config/setting.ts';
import { ConfigError } from '../../src/runtime/start-error.ts';
import type { LeaseServer } from '../placement/lease-server.ts';
import { isLeaving, type Member, type MemberBoard, type Order } from '../placement/members.ts';

/** A cluster's members and leases, as stored in Redis. */
export interface ClusterView {
  readonly board: MemberBoard;
  readonly leases: LeaseServer;
}

interface ClusterTerminal {
  readonly env: Environment;
  print(text: string): void;
  /** Connects to the cluster. Each command disposes the view when it ends. */
  open(env: Environment): Promise<ClusterView & AsyncDisposable>;
}

/** Adds the command `cluster` with its subcommands. Returns it, so that the caller can add more subcommands. */
export function addClusterCommands(program: Command, terminal: ClusterTerminal): Command {
  const { env } = terminal;
  const cluster = program.command('cluster').description('Nodes and shards of the cluster that REDIS_URL names.');
  const inView = async (work: (view: ClusterView) => Promise<string>) => {
    await using view = await terminal.open(env);
    terminal.print(`${await work(view)}\n`);
  };
  const run = (work: (view: ClusterView, argument: string) => Promise<string>) => (argument: unknown) =>
    inView((view) => work(view, typeof argument === 'string' ? argument : '').catch(asSentence));
  cluster.command('status').description('The nodes, and how many shards each has.').action(run(status));
  cluster.command('shards').description('The owner of every shard.').action(run(shards));
  cluster
    .command('who-owns')
    .description('The shard of a ledger, and the node that runs it.')
    .argument('<ledger>', 'ledger id')
    .action(run(whoOwns));
  const orders: [string, string, Order | null][] = [
    ['drain', 'Have a node give its shards to the others, and take none.', 'draining'],
    ['cordon', 'Have a node keep its shards, and take no more.', 'cordoned'],
    ['uncordon', 'Take back what drain or cordon told a node.', null],
  ];
  for (const [name, description, order] of orders)
    cluster
      .command(name)
      .description(description)
      .argument('<node>', 'node id')
      .action(run((view, node) => giveOrder(view, node, order)));
  cluster
    .command('rotate-authority')
    .description('Make the private key in FILE the authority of the cluster, whose nodes are stopped.')
    .argument('<file>', 'Ed25519 private key, PEM (ledger-trust keygen)')
    .action(async (file: string) => {
      const { rotateClusterAuthority } = await import('./rotate-authority.ts');
      await inView(({ board }) => rotateClusterAuthority(env, file, board));
    });
  cluster
    .command('confirm-authority')
    .description(
      'Sign the list of all keys of the authority, which a version before 0.2.0 wrote. Without a digest it shows the list.',
    )
    .argument('[digest]', 'of the list, as it was shown')
    .action(async (digest: string | undefined) => {
      const { confirmClusterAuthority } = await import('./rotate-authority.ts');
      terminal.print(`${await confirmClusterAuthority(env, digest)}\n`);
    });
  const logCommands = () => import('./log-commands.ts');
  addLogCommands(cluster, {
    description: 'The name and the key that sign the checkpoints of the cluster, whose nodes are stopped.',
    rotate: 'Make the private key in FILE sign the checkpoints. The old key stays listed.',
    keep: 'State that nothing was signed since the copy in the keyspace was made: a planned move.',
    onRotate: (file) => inView(async ({ board }) => (await logCommands()).rotateClusterLog(env, file, board)),
    onKeep: () => inView(async ({ board }) => (await logCommands()).keepClusterLog(env, board)),
    onNewOrigin: (name, file) =>
      inView(async ({ board }) => (await logCommands()).moveClusterLog(env, name, file, board)),
  });
  return cluster;
}

/** Turns an error of Redis into a ConfigError. */
function asSentence(error: unknown): never {
  if (error instanceof ConfigError) throw error;
  const why = error instanceof Error ? error.message : String(error);
  throw new ConfigError(`Redis did not do it (${why}): see whether it runs and may be written to, and try again.`);
}

async function status({ board, leases }: ClusterView): Promise<string> {
  const members = await board.list();
  const shardCount = countOf(members);
  const owners = [...(await leases.owners(shardCount)).values()];
  const rows = members.map((member) => [
    member.id,
    member.address,
    stateOf(member),
    String(owners.filter((owner) => owner === member.id).length),
    member.startedAt,
  ]);
  const known = new Set(members.map(({ id }) => id));
  const orphaned = owners.filter((owner) => !known.has(owner)).length;
  const lines = table([['node', 'address', 'state', 'shards', 'started'], ...rows]);
  return [
    ...lines,
    `${shardCount} shards, ${shardCount - owners.length} free, ${orphaned} of nodes that are gone`,
  ].join('\n');
}

async function shards({ board, leases }: ClusterView): Promise<string> {
  const shardCount = countOf(await board.list());
  const owners = await leases.owners(shardCount);
  return Array.from({ length: shardCount }, (_, shard) => `${shard}\t${owners.get(shard) ?? '-'}`).join('\n');
}

async function whoOwns({ board, leases }: ClusterView, ledgerId: string): Promise<string> {
  if (!isUuid(ledgerId)) throw new ConfigError('A ledger id is a UUID in lower case.');
  const shard = shardOf(ledgerId, countOf(await board.list()));
  return `shard ${shard}: ${(await leases.owner(shard)) ?? 'nobody; the next node asked claims the ledger'}`;
}

async function giveOrder({ board }: ClusterView, node: string, order: Order | null): Promise<string> {
  const isKnown = (await board.list()).some(({ id }) => id === node);
  if (!isKnown && order !== null) throw new ConfigError(`There is no node ${node}: see \`cluster status\`.`);
  const hadOrder = await board.order(node, order);
  if (order !== null) return `${node} is ${order}`;
  if (!hadOrder)
    throw new ConfigError(`Nothing was taken back, for no order stands for ${node}: see \`cluster status\`.`);
  return `${node} takes shards again`;
}

function countOf(members: readonly Member[]): number {
  const [first] = members;
  if (first === undefined)
    throw new ConfigError('No node has announced itself there: check REDIS_URL and CLUSTER_NAME.');
  return first.shardCount;
}

function stateOf(member: Member): string {
  if (member.order !== null) return member.order;
  return isLeaving(member) ? 'stopping' : 'serving';
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
