import { givenLogKey, verifyCheckpoint } from '../../client/proofs/verify-proof.ts';
import type { Checkpoint } from '../../domain/log/checkpoint.ts';
import { isServiceName, originOf, parseOrigin } from '../../domain/log/origin.ts';
import { ProofRefused } from '../../domain/log/proof-refused.ts';
import { nameOf, readText } from '../commands/file-content.ts';
import { refusedError } from '../commands/refused-proof.ts';
import { inputError, type Terminal, usageError } from '../terminal/terminal.ts';
import type { VerifyInput } from './verify-input.ts';

/** Options of `verify` that say with which checkpoint events are compared. */
export interface CheckpointOptions {
  readonly checkpoint?: string;
  readonly logKey?: readonly string[];
  readonly origin?: string;
}

/** Throws CliError (exit code 64) for options that cannot be, or that need each other. */
export function checkCheckpointOptions({ checkpoint, logKey, origin }: CheckpointOptions): void {
  if ([checkpoint, logKey, origin].every((value) => value === undefined)) return;
  if (checkpoint === undefined || logKey === undefined || origin === undefined)
    throw usageError('Options --checkpoint, --log-key and --origin are given together.');
  if (!isServiceName(origin) && parseOrigin(origin) === null)
    throw usageError(
      'Option --origin takes the name of the service, such as ledger.example/v1, or the origin of the log.',
    );
  try {
    logKey.forEach(givenLogKey);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw usageError(`Option --log-key: ${error.message}.`);
  }
}

/**
 * The verified checkpoint of the ledger or master of the events. undefined if none is given. Throws CliError: exit code
 * 1 if it is refused, 66 if the file holds none.
 */
export async function checkpointFor(
  terminal: Terminal,
  { kind, ledgerId, masterId }: VerifyInput,
  { checkpoint: path, logKey: keys = [], origin: given = '' }: CheckpointOptions,
): Promise<Checkpoint | undefined> {
  if (path === undefined) return undefined;
  const note = await readText(terminal, path);
  const log = kind === 'master' ? { kind, id: masterId } : { kind: 'ledger' as const, id: ledgerId };
  if (log.id === null)
    throw inputError('The file does not say of which ledger or master its events are: a checkpoint needs an export.');
  const serviceName = parseOrigin(given)?.serviceName ?? given;
  const origin = originOf({ serviceName, kind: log.kind, id: log.id });
  try {
    if (parseOrigin(given) !== null && given !== origin)
      throw new ProofRefused('wrong_origin', `The events are of ${origin}, not of ${given}.`);
    return verifyCheckpoint(note, { origin, keys });
  } catch (error) {
    if (!(error instanceof ProofRefused)) throw error;
    throw error.reason === 'malformed' ? inputError(`${nameOf(path)}: ${error.message}`) : refusedError(error);
  }
}
