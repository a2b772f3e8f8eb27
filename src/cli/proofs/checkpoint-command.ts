import { appendFile } from 'node:fs/promises';
import { type Command, InvalidArgumentError } from 'commander';
import type { LedgerTrustClient } from '../../client/client.ts';
import { LedgerTrustError } from '../../client/error.ts';
import type { VerifiedCheckpoint } from '../../client/proofs/proof-reading.ts';
import { Watermarks, WatermarksNotWritten } from '../../client/proofs/watermarks.ts';
import type { WatermarkState } from '../../client/watermark-store.ts';
import { encodeBase64 } from '../../domain/keys/base64.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import { isServiceName } from '../../domain/log/origin.ts';
import { ProofRefused } from '../../domain/log/proof-refused.ts';
import { isUuid } from '../../domain/values/uuid-form.ts';
import { addApiCommand, listOption, neededOption, option, sentenceOf } from '../api/api-command.ts';
import { recordLines } from '../api/shown-answer.ts';
import { refusedError } from '../commands/refused-proof.ts';
import { shownText } from '../terminal/shown-text.ts';
import { CliError, inputError, outputError, reasonOf, type Terminal, usageError } from '../terminal/terminal.ts';

interface CheckpointCommandOptions {
  readonly master?: string;
  readonly state: string;
  readonly logKey?: readonly string[];
  readonly newOrigin?: string;
}

/** `ledger-trust checkpoint`: fetches the newest checkpoint of a log, and compares it with the kept one. */
export function addCheckpoint(program: Command, terminal: Terminal): void {
  addApiCommand<CheckpointCommandOptions>(program, terminal, {
    usage: 'checkpoint [ledger]',
    description:
      'Fetch the newest signed checkpoint of a ledger or a master, verify it, compare it with the one that was kept, and keep it.',
    kind: 'read',
    options: [
      option('--master <uuid>', 'of this master, in place of a ledger'),
      neededOption(
        '--state <file>',
        'what is kept of the service: its name, the accepted keys and the newest checkpoints; made at the first use',
      ),
      listOption('--log-key <key>', 'accept this log key, base64 of 32 bytes or a vkey, which you have from elsewhere'),
      option('--new-origin <name>', 'accept that the service has this name now').argParser(serviceName),
    ],
    watermarks: ({ state, logKey: logKeys, newOrigin }) => {
      try {
        return new Watermarks(state, { logKeys, newOrigin });
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        throw usageError(`${error.message}.`);
      }
    },
    async run({ client, args: [ledgerId], options: { master, state: file } }) {
      const log = logOf(ledgerId, master);
      const watermarks = new Watermarks(file);
      const before = await stateIn(watermarks, file);
      const found = await checked(() => log(client), file);
      const after = await stateIn(watermarks, file);
      if (after !== null) terminal.tell(acceptedText(before, after, file));
      const kept = before?.checkpoints.get(found.origin)?.split('\n')[1];
      const lines = recordLines({
        log: found.origin,
        size: found.size,
        root: encodeBase64(found.root),
        before: kept === undefined ? 'none was kept' : `${kept}, which it continues`,
      });
      return { json: jsonOf(found), ids: [found.origin], lines };
    },
  });
}

function serviceName(text: string): string {
  if (isServiceName(text)) return text;
  throw new InvalidArgumentError('It takes the name of a service, such as ledger.example/v1.');
}

function logOf(ledgerId = '', masterId: string | undefined) {
  if ((ledgerId === '') === (masterId === undefined))
    throw usageError('Give the id of a ledger, or --master and that of a master.');
  const id = masterId ?? ledgerId;
  if (!isUuid(id)) throw usageError(`An id must be a UUID in lower case: ${JSON.stringify(id)} is none.`);
  return (client: LedgerTrustClient) => (masterId === undefined ? client.checkpoint(id) : client.masterCheckpoint(id));
}

/** Throws CliError (exit code 66) if the file cannot be read or holds something else. */
async function stateIn(watermarks: Watermarks, file: string): Promise<WatermarkState | null> {
  try {
    return await watermarks.read();
  } catch (error) {
    const reason =
      error instanceof LedgerTrustError ? `it holds no watermarks (${String(error.cause)})` : reasonOf(error);
    throw inputError(`${file} cannot be read: ${reason}.`);
  }
}

/**
 * Both notes of a contradiction, or of one that the service does not rule out, are kept beside the state. Throws
 * CliError (exit code 74) if the state cannot be written.
 */
async function checked(look: () => Promise<VerifiedCheckpoint>, file: string): Promise<VerifiedCheckpoint> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof LedgerTrustError && error.notes.length > 0) {
      const unproven = 'The service did not show that its new checkpoint continues the kept one.';
      throw await withEvidence(`${sentenceOf(error)} ${unproven}`, error.notes, `${file}.unproven`);
    }
    if (error instanceof WatermarksNotWritten) throw outputError(file, error.cause);
    if (!(error instanceof ProofRefused)) throw error;
    const refused = refusedError(error);
    if (error.reason !== 'checkpoints_contradict') throw refused;
    throw await withEvidence(refused.message, error.notes, `${file}.contradiction`);
  }
}

/** Appends the notes to the file. Returns the error with a sentence that says where they are. */
async function withEvidence(message: string, notes: readonly string[], evidence: string): Promise<CliError> {
  try {
    await appendFile(evidence, notes.join('\n'), { mode: 0o600, flush: true });
  } catch (failure) {
    return new CliError(`${message} ${evidence} cannot be written: ${reasonOf(failure)}.`);
  }
  return new CliError(`${message} Both notes are in ${evidence}.`);
}

function jsonOf({ origin, size, root, note }: VerifiedCheckpoint) {
  return { origin, size, root_hash: encodeBase64(root), checkpoint: note };
}

/** What the state accepts that it did not accept before. Empty for nothing. */
function acceptedText(before: WatermarkState | null, after: WatermarkState, file: string): string {
  const isNew =
    (keys: readonly string[] = []) =>
    (key: string) =>
      !keys.includes(key);
  const sameName = before?.origin === after.origin;
  const lines = [
    ...(sameName ? [] : [`name           ${after.origin}`]),
    ...after.logKeys.filter(isNew(sameName ? before.logKeys : [])).map((key) => `log key        ${fingerprint(key)}`),
    ...after.authorityKeys.filter(isNew(before?.authorityKeys)).map((key) => `authority key  ${fingerprint(key)}`),
  ];
  if (lines.length === 0) return '';
  const first = before === null ? 'First use' : 'Newly accepted';
  const title = `${first}. From now on ${file} accepts these. Compare the keys (SHA-256) with what you know from elsewhere:`;
  return [title, ...lines.map((line) => `  ${line}`)].map((line) => `${shownText(line)}\n`).join('');
}

function fingerprint(publicKey: string): string {
  return sha256Hex(Buffer.from(publicKey, 'base64'));
}
