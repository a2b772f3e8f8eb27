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

/** A command as it crosses to another node: commands are plain data. A signed form that is the payload itself crosses once. */
export function commandText(command: Command): string {
  if (command.kind !== 'append_event' || command.signature?.signedForm !== command.payload)
    return JSON.stringify(command);
  return JSON.stringify({ ...command, signature: { ...command.signature, signedForm: null } });
}

/**
 * Reads it back. Peers have proved that they are nodes of this cluster, so that only what would be misread as another command is looked
 * at. Throws TypeError.
 */
export function commandOf(text: string): Command {
  const value: unknown = JSON.parse(text);
  if (!isCommand(value)) throw new TypeError('a peer sent something that is no command');
  if (value.kind !== 'append_event' || value.signature === null) return value;
  const { signedForm } = value.signature as { readonly signedForm: string | null };
  return signedForm === null ? { ...value, signature: { ...value.signature, signedForm: value.payload } } : value;
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
