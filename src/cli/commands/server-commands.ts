import type { Command } from 'commander';
import { hearStopSignals } from '../terminal/stop-signals.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { addLogCommands } from './log-arguments.ts';

/** The commands that run on a node's machine. Only they import the server, so that the other commands start at once. */
export function addServerCommands(program: Command, terminal: Terminal): void {
  /** An action that prints the sentence with which `run` resolves. */
  const printing =
    <Args extends unknown[]>(run: (...args: Args) => Promise<string>) =>
    async (...args: Args) =>
      terminal.print(`${await run(...args)}\n`);
  program
    .command('serve')
    .description('Run a node with everything in DATA_DIR, until SIGTERM. Settings come from the environment.')
    .action(async () => {
      const signals = hearStopSignals(process);
      const { serve } = await import('../serve.ts');
      // Anything left open, for example output that nobody reads, must not hold the process.
      process.exit(await serve(terminal.env, signals));
    });

  program
    .command('backup')
    .description('Copy the data of DATA_DIR, of a node that may be running, into a new data directory.')
    .argument('<dir>', 'directory to make')
    .action(printing(async (dir: string) => (await import('./backup.ts')).backup(terminal, dir)));

  program
    .command('scrub')
    .description(
      'Look at every record in DATA_DIR, of a stopped node, and at every hash of trees and signed head, and name those that are damaged or do not agree with the events. Exit code 1: there are some.',
    )
    .option('--repair', 'remove wrong hashes of trees: nodes make them anew from the events')
    .action(async (options: { readonly repair?: boolean }) => {
      const { scrub } = await import('./scrub.ts');
      terminal.exitWith(await scrub(terminal, options));
    });

  const authority = program.command('authority').description('The key that seals the events of a node.');
  authority
    .command('rotate')
    .description(
      'Make the private key in FILE the authority of the stopped node; its start is signed by the key in use.',
    )
    .argument('<file>', 'Ed25519 private key, PEM (ledger-trust keygen)')
    .action(printing(async (file: string) => (await import('./authority.ts')).rotate(terminal.env, file)));
  authority
    .command('confirm')
    .description(
      'Sign the list of all keys of the authority, of a stopped node whose data are of a version before 0.2.0. Without a digest it shows the list.',
    )
    .argument('[digest]', 'of the list, as it was shown')
    .action(printing(async (digest?: string) => (await import('./authority.ts')).confirm(terminal.env, digest)));

  const { env } = terminal;
  addLogCommands(program, {
    description: 'The name and the key that sign the checkpoints of a node.',
    rotate: 'Make the private key in FILE sign the checkpoints of the stopped node. The old key stays listed.',
    keep: 'State that nothing was signed since the copy in DATA_DIR was made: a planned move.',
    onRotate: printing(async (file) => (await import('./log.ts')).rotateLog(env, file)),
    onKeep: printing(async () => (await import('./log.ts')).keepRestoredLog(env)),
    onNewOrigin: printing(async (name, file) => (await import('./log.ts')).moveLog(env, name, file)),
  });

  program
    .command('schema')
    .description('The tables of a Cassandra keyspace, for a cluster of nodes.')
    .command('apply')
    .description(
      'Make the keyspace and its tables, or find them as they should be. Run it from one place, with every node of Cassandra up.',
    )
    .option('--replication <list>', 'copies by data centre, for example datacenter1:3')
    .option('--shards <n>', 'number of shards of a new store')
    .action(
      printing(async (options: { replication?: string; shards?: string }) =>
        (await import('./schema.ts')).applySchema(terminal.env, options),
      ),
    );

  program
    .command('copy')
    .description(
      'Take the data of DATA_DIR, which no node serves meanwhile, into the keyspace of a cluster. If it was interrupted, run it again: it continues.',
    )
    .requiredOption('--from <store>', 'lmdb: the data of DATA_DIR')
    .requiredOption('--to <store>', 'cassandra: the keyspace that the CASSANDRA_ variables name')
    .action(async (options: { from: string; to: string }) => {
      const { copy } = await import('./copy.ts');
      terminal.exitWith(await copy(terminal, options));
    });
}
