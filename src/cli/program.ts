import { Command, CommanderError } from 'commander';
import { redaction, secretsIn } from '../runtime/telemetry/redaction.ts';
import { addAccountCommands } from './api/account-commands.ts';
import { addEventCommands } from './api/event-commands.ts';
import { addFollowCommand } from './api/follow-command.ts';
import { addGrantCommands } from './api/grant-commands.ts';
import { addKeyCommands } from './api/key-commands.ts';
import { addLedgerCommands } from './api/ledger-commands.ts';
import { addMasterCommands } from './api/master-commands.ts';
import { addWebhookCommands } from './api/webhook-commands.ts';
import { addExport } from './commands/export-command.ts';
import { addKeygen } from './commands/keygen-command.ts';
import { addListen } from './commands/listen.ts';
import { addServerCommands } from './commands/server-commands.ts';
import { addSign } from './commands/sign-command.ts';
import { addCheckpoint } from './proofs/checkpoint-command.ts';
import { addProof } from './proofs/proof-command.ts';
import { exitCodes } from './terminal/exit-codes.ts';
import { shownText } from './terminal/shown-text.ts';
import { CliError, type Terminal } from './terminal/terminal.ts';
import { addVerify } from './verify/verify-command.ts';

export type AddCommands = (program: Command, terminal: Terminal) => void;

/** Each failure is one sentence on stderr and one of the exit codes. `addMore`: commands that only clusters have. */
export async function runProgram(
  terminal: Terminal,
  args: readonly string[],
  version: string,
  addMore: AddCommands = () => {},
): Promise<void> {
  const program = new Command('ledger-trust')
    .description('The Ledger Trust Service: calls of its API, keys, signatures, verification, and the server.')
    .version(version)
    .addHelpText(
      'after',
      `
Exit codes:
  0   done
  ${exitCodes.failed}   it failed (verify: what is in verify --help)
  ${exitCodes.usage}  the command line is wrong
  ${exitCodes.input}  a file that the command reads is not there, or does not hold what it should; also a profile
  ${exitCodes.writeFailed}  what the command writes cannot be written: stdout, or a file`,
    )
    .exitOverride()
    .configureOutput({ writeErr: (text) => terminal.tell(text), writeOut: (text) => void terminal.print(text) });
  // After the settings above, because a command inherits the program's settings when it is added.
  // In the order in which a newcomer meets them.
  addAccountCommands(program, terminal);
  addLedgerCommands(program, terminal);
  addMasterCommands(program, terminal);
  addEventCommands(program, terminal);
  addFollowCommand(program, terminal);
  addGrantCommands(program, terminal);
  addKeyCommands(program, terminal);
  addWebhookCommands(program, terminal);
  addKeygen(program, terminal);
  addSign(program, terminal);
  addVerify(program, terminal);
  addExport(program, terminal);
  addCheckpoint(program, terminal);
  addProof(program, terminal);
  addListen(program, terminal);
  addServerCommands(program, terminal);
  addMore(program, terminal);
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      // commander has printed what was wrong. Help and version are no errors.
      terminal.exitWith(error.exitCode === 0 ? 0 : exitCodes.usage);
      return;
    }
    const redact = redaction(secretsIn(terminal.env));
    terminal.tell(`ledger-trust: ${shownText(redact(error instanceof Error ? error.message : String(error)))}\n`);
    terminal.exitWith(error instanceof CliError ? error.exitCode : exitCodes.failed);
  }
}
