import type { Command } from 'commander';

/** What differs between the commands of a node's logs and those of a cluster's: descriptions and actions. */
interface LogCommands {
  readonly description: string;
  readonly rotate: string;
  readonly keep: string;
  onRotate(file: string): Promise<void>;
  onKeep(): Promise<void>;
  /** `file`: the key that signs under the new name, if not the present one. */
  onNewOrigin(name: string, file: string | undefined): Promise<void>;
}

/** Adds `log rotate`, `log keep` and `log new-origin`. */
export function addLogCommands(parent: Command, commands: LogCommands): void {
  const log = parent.command('log').description(commands.description);
  log
    .command('rotate')
    .description(commands.rotate)
    .argument('<file>', 'Ed25519 private key, PEM (ledger-trust keygen)')
    .action((file: string) => commands.onRotate(file));
  log
    .command('keep')
    .description(commands.keep)
    .action(() => commands.onKeep());
  log
    .command('new-origin')
    .description(
      'Sign under a new name from now on: after any other restore, for a clone, and after a theft of the key.',
    )
    .argument('<name>', 'a name that was never used, such as the old one and a date')
    .option('--key <file>', 'Ed25519 private key, PEM, that signs under the new name')
    .action((name: string, { key }: { key?: string }) => commands.onNewOrigin(name, key));
}
