import {
  create,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import { isRetryable, LedgerError } from '../../domain/errors.ts';
import type { CommandKey } from '../../domain/event/event.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { RecordStore, StoredRecord } from '../../store/record-store.ts';
import type { Call, EntityRequest } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import { type Entropy, type Random, SEED_BYTES, seededEntropy } from '../calls/entropy.ts';
import { count, decodeRecord, listOf, oneOf, optional, type RecordForm, text } from '../records/record-form.ts';
import type { SecretBox } from '../records/secret-box.ts';
import { commandId } from './command-key.ts';
import { putPrerequisite } from './prerequisite-record.ts';
import { useEntityRequest } from './used-requests.ts';

const KIND = 'idempotency';

interface Claim {
  readonly fingerprint: string;
  /** `free`: the run ended in an error, and the next call with the key runs it again. */
  readonly state: 'running' | 'free' | 'done';
  /** When the first run began and when the claim expires; Unix time, ms. */
  readonly time: number;
  readonly expires: number;
  /** After this time a run counts as lost; Unix time, ms. */
  readonly deadline: number;
  /** Encrypted: the seed, or the answer message once the claim is done. */
  readonly sealed: string;
  /** Once the claim is done: the ledgers that the call named or opened. The access history needs them for a replay. */
  readonly ledgers?: readonly string[];
}

export interface RunOnceParts {
  readonly records: RecordStore;
  readonly secrets: SecretBox;
  readonly random: Random;
  /** Unix time, ms. */
  now(): number;
}

interface Held {
  readonly claim: Claim;
  readonly version: string;
  readonly isFirstRun: boolean;
}

interface RepeatableCall extends Call {
  commandKey: CommandKey | null;
  /** Headers of every answer, errors too. */
  readonly headers: [name: string, value: string][];
  readonly ledgers: ReadonlySet<string> | null;
  /** From here on ids, bytes and the time are those of the call's first run. */
  repeat(entropy: Entropy, now: number): void;
}

interface OnceRequest {
  readonly key: string | undefined;
  /** The request that an entity signed as a whole. It changes state once. null if there is none. */
  readonly signed: EntityRequest | null;
  readonly writesLedger: boolean;
  readonly output: DescMessage;
  fingerprint(): string;
}

/**
 * Runs a call so that it changes state once, however often it is sent.
 * - A call that writes to an existing ledger gets its command key. The service submits its command with `submitOnce`.
 * - Any other call runs under a claim, or gets its first answer again.
 *
 * Rejects with `invalid_argument`, `invalid_signature`, `idempotency_key_reused`, `idempotency_in_progress`, and the
 * errors of `run`.
 */
export async function runOnce(
  parts: RunOnceParts,
  call: RepeatableCall,
  request: OnceRequest,
  run: () => Promise<object>,
): Promise<object> {
  const { key, signed, writesLedger, output } = request;
  const { actorId } = callerOf(call);
  const id = key === undefined ? null : commandId(actorId, key);
  if (signed !== null) await useEntityRequest(parts.records, actorId, signed, id, parts.now());
  if (id === null) return run();
  const fingerprint = request.fingerprint();
  if (!writesLedger) return runClaimed(parts, call, id, fingerprint, output, run);
  call.commandKey = { id, fingerprint, permanent: false };
  return run();
}

/**
 * Runs a call under a claim, or returns the earlier answer. The claim is a record that is stored before the call runs.
 * It holds a seed, from which every run takes the same ids, secrets and time, so a run that is repeated after a crash
 * comes to the same result. Seed and answer may contain secrets, so both are stored encrypted.
 *
 * A claim may therefore be taken over once its deadline has passed, and at once if its run ended in an error. If the
 * first run was refused, nothing was made and the claim is deleted. `id`: that of the command key.
 */
async function runClaimed(
  parts: RunOnceParts,
  call: RepeatableCall,
  id: string,
  fingerprint: string,
  output: DescMessage,
  run: () => Promise<object>,
): Promise<object> {
  const { records, secrets } = parts;
  const { claim, version, isFirstRun } = await takeClaim(parts, call, id, fingerprint);
  if (claim.state === 'done') {
    call.markReplayed();
    for (const ledgerId of claim.ledgers ?? []) call.named(ledgerId);
    return fromBinary(output, secrets.open(claim.sealed, answerContext(id)));
  }
  call.repeat(seededEntropy(secrets.open(claim.sealed, seedContext(id)), claim.time), claim.time);
  // If another call took the claim over, it settles the claim and nothing changes here. If the store fails, the claim
  // stays `running` until its deadline; then the call runs again, with the same result.
  const settle = (settled: Claim) => ignoringStoreErrors(records.put(record(id, settled, version)));
  let answer: Message;
  try {
    answer = create(output, (await run()) as MessageInitShape<DescMessage>);
  } catch (error) {
    if (isFirstRun && error instanceof LedgerError && !isRetryable(error))
      await ignoringStoreErrors(records.remove(KIND, id, version));
    else await settle({ ...claim, state: 'free', deadline: 0 });
    throw error;
  }
  const sealed = secrets.seal(toBinary(output, answer), answerContext(id));
  const expires = parts.now() + limits.idempotencyStoredMs;
  await settle({ ...claim, state: 'done', expires, sealed, ledgers: [...(call.ledgers ?? [])] });
  return answer;
}

async function ignoringStoreErrors(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
  }
}

/** How many lost races for the claim it takes to answer that another call with the key is running. */
const RACES_MAX = 5;

async function takeClaim(parts: RunOnceParts, call: RepeatableCall, id: string, fingerprint: string): Promise<Held> {
  const deadline = call.deadline + limits.deadlineGraceMs;
  let found: StoredRecord | null = null;
  for (let race = 0; race < RACES_MAX; race += 1) {
    const known = found === null ? null : decodeRecord(found, claimForm);
    const current = known !== null && known.expires > parts.now() ? known : null;
    if (found !== null && current !== null) {
      if (current.fingerprint !== fingerprint) throw keyReused();
      if (current.state === 'done') return { claim: current, version: found.version, isFirstRun: false };
      if (current.state === 'running' && current.deadline > parts.now()) throw inProgress(call);
    }
    const claim: Claim = { ...(current ?? freshClaim(parts, id, fingerprint)), state: 'running', deadline };
    const put = await putPrerequisite(parts.records, record(id, claim, found?.version ?? 'absent'));
    if (put.ok) return { claim, version: put.version, isFirstRun: current === null };
    found = put.current;
  }
  throw inProgress(call);
}

function freshClaim(parts: RunOnceParts, id: string, fingerprint: string) {
  const time = parts.now();
  const sealed = parts.secrets.seal(parts.random(SEED_BYTES), seedContext(id));
  return { fingerprint, time, expires: time + limits.idempotencyStoredMs, sealed };
}

function record(id: string, claim: Claim, replaces: string) {
  return { kind: KIND, id, replaces, value: JSON.stringify(claim), lookups: [], expiresAt: claim.expires };
}

export const claimForm: RecordForm<Claim> = {
  kind: KIND,
  form: {
    fingerprint: text,
    state: oneOf('running', 'free', 'done'),
    time: count,
    expires: count,
    deadline: count,
    sealed: text,
    ledgers: optional(listOf(text)),
  },
};

const seedContext = (id: string): string => `${KIND}/${id}/seed`;
const answerContext = (id: string): string => `${KIND}/${id}/answer`;

function keyReused(): LedgerError {
  const message = 'This Idempotency-Key was used for another request: send a new key with a new request.';
  return new LedgerError('idempotency_key_reused', message, { header: 'Idempotency-Key', field: 'Idempotency-Key' });
}

function inProgress(call: RepeatableCall): LedgerError {
  call.headers.push(['retry-after', '1']);
  const message = 'The first request with this Idempotency-Key is still running: retry with the same key in a moment.';
  return new LedgerError('idempotency_in_progress', message, { header: 'Idempotency-Key', field: 'Idempotency-Key' });
}
