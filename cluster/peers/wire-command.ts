import { isMembers, type Members } from '../../src/domain/event/row.ts';
import type { Command, CommandBase } from '../../src/domain/ledger/command.ts';
import { checkConsistency } from './command-consistency.ts';
import { commandReaders } from './command-fields.ts';
import { type FieldReaders, readFields, UnreadableCommand } from './wire-fields.ts';

/**
 * Returns the JSON of a command for another node. Nodes of all versions know its command keys as `marks`. A signed form
 * that equals the payload is sent only once, as null.
 */
export function commandText(command: Command): string {
  const { commandKeys: marks, signature, ...rest } = command;
  if (command.kind !== 'append_event' || signature?.signedForm !== command.payload)
    return JSON.stringify({ ...rest, marks, signature });
  return JSON.stringify({ ...rest, marks, signature: { ...signature, signedForm: null } });
}

/**
 * Reads a command from the JSON of `commandText`. Checks every field, and leaves unknown fields out. Throws
 * UnreadableCommand, also for a kind or a value that only another version knows.
 */
export function commandOf(text: string): Command {
  const value = membersOf(text);
  const { kind } = value;
  if (typeof kind !== 'string' || !Object.hasOwn(commandReaders, kind))
    throw new UnreadableCommand('its kind is not known');
  const readers: FieldReaders<CommandBase> = commandReaders[kind as Command['kind']];
  const read = readFields(readers, withSignedForm({ ...value, commandKeys: value.marks }), 'command') as Command;
  checkConsistency(read);
  return read;
}

function membersOf(text: string): Members {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new UnreadableCommand('it is not JSON', { cause });
  }
  if (!isMembers(value)) throw new UnreadableCommand('it is no object');
  return value;
}

function withSignedForm(value: Members): Members {
  const { kind, signature, payload } = value;
  if (kind !== 'append_event' || !isMembers(signature) || signature.signedForm !== null) return value;
  return { ...value, signature: { ...signature, signedForm: payload } };
}
