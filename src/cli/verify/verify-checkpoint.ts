import { firstTrust, withEndorsedKeys } from '../../client/proofs/log-trust.ts';
import { type ExpectedLog, givenLogKey, verifyCheckpoint } from '../../client/proofs/verify-proof.ts';
import type { AuthorityDocument } from '../../client/verify/key-source.ts';
import type { Checkpoint } from '../../domain/log/checkpoint.ts';
import { isServiceName, type LogKind, originOf, parseOrigin } from '../../domain/log/origin.ts';
import { ProofRefused } from '../../domain/log/proof-refused.ts';
import { readText } from '../commands/file-content.ts';
import { refusedError } from '../commands/refused-proof.ts';
import { inputError, nameOf, type Terminal, usageError } from '../terminal/terminal.ts';
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
  /** The options are for another file. */
  readonly isBeside: boolean;
}

/** The refusals of a note that somebody else signed than was expected. */
const OTHER_SIGNER = new Set<string>(['unknown_log_key', 'wrong_origin']);

/**
 * The verified checkpoints of the ledger or master of the events: that of the option and that of the file `path`. They
 * are verified under the keys of the options, else under those of `anchor`, the trust anchor if it is trusted. Where
 * the option names a file, its keys may be older than the export, whose own checkpoint is then left to the anchor. None
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
  for (const given of await notesOf(terminal, path, input, options)) {
    try {
      const checkpoint = verified(given, input, options, anchor);
      if (checkpoint !== null) checkpoints.push(checkpoint);
      else if (options.checkpoint !== undefined && options.logKey === undefined)
        throw usageError(
          'Say who signs checkpoints: give --log-key and --origin beside --checkpoint, or --resolver or --authority.',
        );
    } catch (error) {
      if (!(error instanceof ProofRefused)) throw error;
      const { place } = given;
      throw error.reason === 'malformed' ? inputError(`${place}: ${error.message}`) : refusedError(error, place);
    }
  }
  return checkpoints;
}

async function notesOf(
  terminal: Terminal,
  path: string,
  { checkpoint }: VerifyInput,
  { checkpoint: given, logKey }: CheckpointOptions,
): Promise<readonly GivenNote[]> {
  const place = `The checkpoint in ${nameOf(path)}`;
  const inFile = checkpoint === null ? [] : [{ note: checkpoint, place, isBeside: given !== undefined }];
  if (given !== undefined) {
    const first = { note: await readText(terminal, given), place: nameOf(given), isBeside: false };
    return [first, ...inFile.filter(({ note }) => note !== first.note)];
  }
  if (checkpoint === null && logKey !== undefined)
    throw usageError(`Give --checkpoint beside --log-key and --origin: ${nameOf(path)} holds no checkpoint.`);
  return inFile;
}

/** null: nobody says who signs this checkpoint. Throws ProofRefused. */
function verified(
  { note, isBeside }: GivenNote,
  input: VerifyInput,
  options: CheckpointOptions,
  anchor: AuthorityDocument | null,
): Checkpoint | null {
  const given = givenLog(input, options);
  try {
    if (given !== null) return verifyCheckpoint(note, given);
  } catch (error) {
    if (!isBeside || !(error instanceof ProofRefused) || !OTHER_SIGNER.has(error.reason)) throw error;
  }
  const accepted = acceptedLogOf(anchor, input.authority, note);
  if (accepted === null) return null;
  const { serviceName, keys } = accepted;
  return verifyCheckpoint(note, { origin: originOf({ ...logOf(input), serviceName }), keys });
}

/** The log of the options. null: they name none. */
function givenLog(input: VerifyInput, { logKey: keys, origin: given = '' }: CheckpointOptions): ExpectedLog | null {
  const log = logOf(input);
  if (keys === undefined) return null;
  const serviceName = parseOrigin(given)?.serviceName ?? given;
  const origin = originOf({ ...log, serviceName });
  if (parseOrigin(given) !== null && given !== origin)
    throw new ProofRefused('wrong_origin', `The events are of ${origin}, not of ${given}.`);
  return { origin, keys };
}

function logOf({ kind, ledgerId, masterId }: VerifyInput): { readonly kind: LogKind; readonly id: string } {
  const log = kind === 'master' ? { kind, id: masterId } : { kind: 'ledger' as const, id: ledgerId };
  if (log.id === null)
    throw inputError('The file does not say of which ledger or master its events are: a checkpoint needs an export.');
  return { ...log, id: log.id };
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
