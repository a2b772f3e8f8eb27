import { ConfigError } from '../config.ts';
import { SecretsKeyMismatch } from '../service/secrets-key-check.ts';
import { AuthorityMismatch } from '../service/signatures/authority.ts';
import { StartError } from '../store/start-error.ts';

const known = [ConfigError, StartError, AuthorityMismatch, SecretsKeyMismatch];

/**
 * Tells on stderr why a node does not start: what an operator can mend is one sentence, anything else shows where it came from. `words`
 * says the sentence in the words of this kind of node. Answers the exit code.
 */
export function refuse(error: unknown, words: (message: string) => string = (message) => message): number {
  const isKnown = known.some((kind) => error instanceof kind);
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error ? error.stack : undefined;
  process.stderr.write(`ledger-trust: ${isKnown ? words(message) : (stack ?? message)}\n`);
  return 1;
}
