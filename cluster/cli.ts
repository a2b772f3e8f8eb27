import { Command, CommanderError } from 'commander';
import { addClusterCommands, openRedisView } from './cli/cluster-commands.ts';

const FAILED = 1;
const USAGE = 2;

const program = new Command('cluster-cli').description('What operators ask and tell a cluster.').exitOverride();
addClusterCommands(program, {
  env: process.env,
  print: (text) => void process.stdout.write(text),
  open: openRedisView,
});
try {
  await program.parseAsync(process.argv.slice(2), { from: 'user' });
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : USAGE;
  else {
    process.stderr.write(`ledger-trust: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = FAILED;
  }
}
