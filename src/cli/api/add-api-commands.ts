import type { Command } from 'commander';
import type { Terminal } from '../terminal/terminal.ts';
import { addAccountCommands } from './account-commands.ts';
import { addEventCommands } from './event-commands.ts';
import { addFollowCommand } from './follow-command.ts';
import { addGrantCommands } from './grant-commands.ts';
import { addKeyCommands } from './key-commands.ts';
import { addLedgerCommands } from './ledger-commands.ts';
import { addMasterCommands } from './master-commands.ts';
import { addWebhookCommands } from './webhook-commands.ts';

/** The commands that call the API, in the order in which a newcomer meets them. */
export function addApiCommands(program: Command, terminal: Terminal): void {
  addAccountCommands(program, terminal);
  addLedgerCommands(program, terminal);
  addMasterCommands(program, terminal);
  addEventCommands(program, terminal);
  addFollowCommand(program, terminal);
  addGrantCommands(program, terminal);
  addKeyCommands(program, terminal);
  addWebhookCommands(program, terminal);
}
