import { ConfigError, StartError } from '../runtime/start-error.ts';
import { type Redact, redaction } from '../runtime/telemetry/redaction.ts';
import { UnreadableRecord } from '../store/unreadable-record.ts';

/** No space, quota exceeded, file too large, read-only file system, disk error. */
const ofDisks: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EROFS', 'EIO']);
const known = [ConfigError, StartError, UnreadableRecord];

/**
 * Prints to stderr why a node does not start: one sentence for what an operator can correct, else the stack. `words`
 * adapts the sentence to this kind of node. Returns the exit code.
 */
export function refuse(
  error: unknown,
  words: (message: string) => string = (message) => message,
  redact: Redact = redaction(),
): number {
  const isKnown = known.some((kind) => error instanceof kind);
  const message =
    error instanceof UnreadableRecord ? damageOf(error) : error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error ? error.stack : undefined;
  process.stderr.write(
    `ledger-trust: ${redact(isKnown ? words(message) : (refusalOfFiles(error) ?? stack ?? message))}\n`,
  );
  return 1;
}

function damageOf({ cause }: UnreadableRecord): string {
  return `The store is damaged: ${cause instanceof Error ? cause.message : String(cause)}. Restore a backup.`;
}

/** A sentence for an error of the disk itself, whichever file it concerns. Returns null for any other error. */
function refusalOfFiles(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (!ofDisks.has(code)) return null;
  const { message } = error as Error;
  return `The disk does not take what is written (${message}): see to its free space, its rights and its health, then start again.`;
}
