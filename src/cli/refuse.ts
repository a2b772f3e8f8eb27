import { ConfigError } from '../config.ts';
import { type Redact, redaction } from '../runtime/redaction.ts';
import { SecretsKeyMismatch } from '../service/secrets-key-check.ts';
import { AuthorityMismatch } from '../service/signatures/authority.ts';
import { StartError } from '../store/start-error.ts';
import { UnreadableRecord } from '../store/unreadable-record.ts';

/** No space, no quota, too long a file, a read-only file system, an error of the disk. */
const ofDisks: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EROFS', 'EIO']);
const known = [ConfigError, UnreadableRecord, StartError, AuthorityMismatch, SecretsKeyMismatch];

/**
 * Tells on stderr why a node does not start: what an operator can mend is one sentence, anything else shows where it came from. `words`
 * says the sentence in the words of this kind of node; `redact` takes secrets out of it. Answers the exit code.
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

/** What the file system says of the disk itself, whichever file it was about; null for anything else. */
function refusalOfFiles(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (!ofDisks.has(code)) return null;
  const { message } = error as Error;
  return `The disk does not take what is written (${message}): see to its free space, its rights and its health, then start again.`;
}
