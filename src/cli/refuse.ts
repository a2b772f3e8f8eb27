import { ConfigError } from '../config.ts';
import { type Redact, redaction } from '../runtime/redaction.ts';
import { SecretsKeyMismatch } from '../service/secrets-key-check.ts';
import { AuthorityMismatch } from '../service/signatures/authority.ts';
import { StartError } from '../store/start-error.ts';

const known = [ConfigError, StartError, AuthorityMismatch, SecretsKeyMismatch];

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
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error ? error.stack : undefined;
  process.stderr.write(`ledger-trust: ${redact(isKnown ? words(message) : (stack ?? message))}\n`);
  return 1;
}
