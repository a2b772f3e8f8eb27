import type { Command } from '../../src/domain/command.ts';

const kinds: ReadonlySet<string> = new Set<Command['kind']>([
  'open_ledger',
  'create_master',
  'append_event',
  'close_master',
  'close_ledger',
  'grant',
  'revoke',
]);

/** A command as it crosses to another node: commands are plain data. */
export function commandText(command: Command): string {
  return JSON.stringify(command);
}

/**
 * Reads it back. Peers have proved that they are nodes of this cluster, so that only what would be misread as another command is looked
 * at. Throws TypeError.
 */
export function commandOf(text: string): Command {
  const value: unknown = JSON.parse(text);
  if (!isCommand(value)) throw new TypeError('a peer sent something that is no command');
  return value;
}

function isCommand(value: unknown): value is Command {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, ledgerId, actorId, marks, deadline } = value as Readonly<Record<string, unknown>>;
  return (
    typeof kind === 'string' &&
    kinds.has(kind) &&
    typeof ledgerId === 'string' &&
    typeof actorId === 'string' &&
    Array.isArray(marks) &&
    typeof deadline === 'number'
  );
}
