import { firstTrust, withEndorsedKeys } from '../../client/proofs/log-trust.ts';
import { type ExpectedLog, givenLogKey, verifyCheckpoint } from '../../client/proofs/verify-proof.ts';
import type { AuthorityDocument } from '../../client/verify/key-source.ts';
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
export function checkCheckpointOptions({ logKey, origin }: CheckpointOptions): void {
  if (logKey === undefined && origin === undefined) return;
  if (logKey === undefined || origin === undefined)
    throw usageError('Options --log-key and --origin are given together.');
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

interface GivenNote {
  readonly note: string;
  readonly place: string;
}

/**
 * The verified checkpoints of the ledger or master of the events: that of the option and that of the file `path`. They
 * are verified under the keys of the options, else under those of `anchor`, the trust anchor if it is trusted. None
 * where no key is trusted and the option names none. Throws CliError: exit code 1 if one is refused, 64 if an option
 * lacks another, 66 if what is given is none.
 */
export async function checkpointsFor(
  terminal: Terminal,
  path: string,
  input: VerifyInput,
  options: CheckpointOptions,
  anchor: AuthorityDocument | null,
): Promise<readonly Checkpoint[]> {
  const checkpoints: Checkpoint[] = [];
  for (const { note, place } of await notesOf(terminal, path, input, options)) {
    try {
      const expected = expectedLog(input, options, note, anchor);
      if (expected !== null) checkpoints.push(verifyCheckpoint(note, expected));
      else if (options.checkpoint !== undefined)
        throw usageError(
          'Say who signs checkpoints: give --log-key and --origin beside --checkpoint, or --resolver or --authority.',
        );
    } catch (error) {
      if (!(error instanceof ProofRefused)) throw error;
      throw error.reason === 'malformed' ? inputError(`${place}: ${error.message}`) : refusedError(error, place);
    }
  }
  return checkpoints;
}

async function notesOf(
  terminal: Terminal,
  path: string,
  { checkpoint }: VerifyInput,
  options: CheckpointOptions,
): Promise<readonly GivenNote[]> {
  const inFile = checkpoint === null ? [] : [{ note: checkpoint, place: `The checkpoint in ${nameOf(path)}` }];
  if (options.checkpoint !== undefined) {
    const given = { note: await readText(terminal, options.checkpoint), place: nameOf(options.checkpoint) };
    return [given, ...inFile.filter(({ note }) => note !== given.note)];
  }
  if (checkpoint === null && options.logKey !== undefined)
    throw usageError(`Give --checkpoint beside --log-key and --origin: ${nameOf(path)} holds no checkpoint.`);
  return inFile;
}

/** null: no trusted document says who signs checkpoints. */
function expectedLog(
  { kind, ledgerId, masterId, authority }: VerifyInput,
  { logKey: keys, origin: given = '' }: CheckpointOptions,
  note: string,
  anchor: AuthorityDocument | null,
): ExpectedLog | null {
  const log = kind === 'master' ? { kind, id: masterId } : { kind: 'ledger' as const, id: ledgerId };
  const { id } = log;
  if (id === null)
    throw inputError('The file does not say of which ledger or master its events are: a checkpoint needs an export.');
  if (keys === undefined) {
    const accepted = acceptedLogOf(anchor, authority, note);
    if (accepted === null) return null;
    return { origin: originOf({ ...log, id, serviceName: accepted.serviceName }), keys: accepted.keys };
  }
  const serviceName = parseOrigin(given)?.serviceName ?? given;
  const origin = originOf({ ...log, id, serviceName });
  if (parseOrigin(given) !== null && given !== origin)
    throw new ProofRefused('wrong_origin', `The events are of ${origin}, not of ${given}.`);
  return { origin, keys };
}

/**
 * The name and the log keys that a trusted trust anchor vouches for: those that it lists, and those that the anchor in
 * the file lists, if a key of the trusted one has endorsed them. A checkpoint that the service signed under a name that
 * it had before stays good.
 */
function acceptedLogOf(anchor: AuthorityDocument | null, inFile: AuthorityDocument | null, note: string) {
  const log = anchor?.log ?? null;
  if (anchor === null || log === null) return null;
  const serviceName = parseOrigin(note.slice(0, Math.max(0, note.indexOf('\n'))))?.serviceName;
  const named = log.previous.find(({ origin }) => origin === serviceName && origin !== log.origin) ?? log;
  if (!isServiceName(named.origin)) return null;
  const trust = firstTrust({ ...anchor, log: { ...log, ...named } }, {});
  const later = inFile?.log ?? null;
  const isSame = later !== null && later.origin === trust.origin;
  const { origin, logKeys } = isSame ? withEndorsedKeys(trust, { ...anchor, log: later }) : trust;
  return { serviceName: origin, keys: logKeys };
}
