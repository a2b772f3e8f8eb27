import { LedgerError } from '../../domain/errors.ts';
import type { CommandKey, LedgerEvent } from '../../domain/event/event.ts';
import { projectionsOf } from '../../domain/event/projection.ts';
import { formatRow } from '../../domain/event/row.ts';
import { areTextsTooLong, eventTextsBytesMax } from '../../domain/event/text-size.ts';
import { type Command, commandMaster, type Lane } from '../../domain/ledger/command.ts';
import { decide } from '../../domain/ledger/decide.ts';
import { applyToLedger, type LedgerState } from '../../domain/ledger/ledger-state.ts';
import { type AuthoritySigner, sealEvent } from '../../domain/ledger/seal.ts';
import { isoTime } from '../../domain/values/time.ts';
import { UUID_V7_RANDOM_BYTES, uuidV7 } from '../../domain/values/uuid.ts';
import type { FoundCommand } from '../../store/ledger-store.ts';
import { keyReused } from '../inbox/in-flight-commands.ts';
import type { PendingCommand } from '../inbox/pending-command.ts';
import { refusedWhenResubmitted } from '../inbox/refusals.ts';
import { asksForKeys, type BatchReads } from './batch-reads.ts';
import type { EventEntry } from './commit-listener.ts';
import type { MasterActor } from './master-actor.ts';
import type { ActorKeys } from './signing-keys.ts';

interface BatchContext {
  readonly reads: BatchReads;
  readonly authority: AuthoritySigner;
  random(bytes: number): Uint8Array;
}

export type CommandResult =
  /** `event`: the first of its events. */
  | { readonly kind: 'written'; readonly pending: PendingCommand; readonly event: LedgerEvent }
  | { readonly kind: 'replayed'; readonly pending: PendingCommand; readonly seq: number }
  /** Answered only once the store has confirmed the ledger's state. */
  | { readonly kind: 'refused'; readonly pending: PendingCommand; readonly error: LedgerError };

export interface DecidedBatch {
  readonly results: readonly CommandResult[];
  readonly entries: readonly EventEntry[];
  /** Not decided yet: each is behind a refused command of its lane, which must be answered first. */
  readonly deferred: readonly PendingCommand[];
  readonly state: LedgerState;
  readonly masters: ReadonlyMap<string, MasterActor>;
}

/** A command failed with something other than a LedgerError. The batch's other commands are retried. */
export class BatchFailed extends Error {
  readonly pending: PendingCommand;

  constructor(pending: PendingCommand, cause: unknown) {
    super('a command could not be decided', { cause });
    this.name = 'BatchFailed';
    this.pending = pending;
  }
}

/**
 * Decides the commands one by one, each against the committed state folded with the batch's earlier entries. So a
 * revocation shuts out an append behind it in the same batch. The commands behind a refused one in its lane wait until
 * it is answered, because it may have to be sent again. The masters' working states run ahead: the caller commits them,
 * or forgets the masters. Does no I/O. Throws BatchFailed.
 */
export function decideBatch(
  committed: LedgerState,
  batch: readonly PendingCommand[],
  context: BatchContext,
): DecidedBatch {
  const entries: EventEntry[] = [];
  const results: CommandResult[] = [];
  const deferred: PendingCommand[] = [];
  /** Lanes with a refused command, and with a command deferred behind it. */
  const refusedLanes = new Set<string>();
  const deferredLanes = new Set<string>();
  let state = committed;
  const refuse = (pending: PendingCommand, error: LedgerError) => {
    const { lane } = pending.command;
    if (lane) refusedLanes.add(lane.id);
    results.push({ kind: 'refused', pending, error });
  };
  const defer = (pending: PendingCommand, lane: Lane) => {
    deferredLanes.add(lane.id);
    deferred.push(pending);
  };
  for (const pending of batch) {
    const { command } = pending;
    const { lane } = command;
    const written = findWritten(command.commandKeys, context.reads.commands);
    if (written !== null) {
      if (written.same) results.push({ kind: 'replayed', pending, seq: written.seq });
      else refuse(pending, keyReused());
      continue;
    }
    if (lane && deferredLanes.has(lane.id)) {
      defer(pending, lane);
      continue;
    }
    const place = entries.length;
    try {
      const draft = draftOne(state, command, context);
      if (lane && refusedLanes.has(lane.id)) {
        defer(pending, lane);
        continue;
      }
      const decided = sealOne(state, command, draft, context, entries);
      results.push({ kind: 'written', pending, event: decided.first });
      state = decided.state;
    } catch (error) {
      if (!(error instanceof LedgerError) || entries.length > place) throw new BatchFailed(pending, error);
      refuse(pending, command.resubmitted === true ? refusedWhenResubmitted(error) : error);
    }
  }
  return { results, entries, deferred, state, masters: context.reads.masters };
}

interface Draft {
  readonly createdMs: number;
  readonly createdAt: string;
  readonly master: MasterActor | null;
  readonly events: ReturnType<typeof decide>;
}

/** Throws the LedgerError that the command is refused with. */
function draftOne(before: LedgerState, command: Command, { reads }: BatchContext): Draft {
  const createdMs = Math.max(reads.now, before.createdAt === '' ? 0 : Date.parse(before.createdAt));
  const createdAt = isoTime(createdMs);
  checkKey(command, createdAt, reads);
  const masterId = commandMaster(command);
  const master = masterId === null ? null : (reads.masters.get(masterId) ?? null);
  const events = decide(before, master?.working ?? null, command, createdAt);
  for (const event of events) checkRowSize(event);
  return { createdMs, createdAt, master, events };
}

/**
 * Throws `payload_too_large` for an event that a transport could not deliver. Fields are bounded where they are
 * checked; this holds for every command, also one that another node has checked.
 */
function checkRowSize({ payload, actorSigPayload }: Draft['events'][number]): void {
  if (!areTextsTooLong(payload, actorSigPayload)) return;
  throw new LedgerError(
    'payload_too_large',
    `An event, with the form of it that was signed, has at most ${eventTextsBytesMax} bytes of canonical JSON.`,
    { limit_bytes: eventTextsBytesMax },
  );
}

/** Adds the entries of a command. Returns the state after them, and its first event. */
function sealOne(
  before: LedgerState,
  command: Command,
  { createdMs, createdAt, master, events }: Draft,
  context: BatchContext,
  entries: EventEntry[],
): { state: LedgerState; first: LedgerEvent } {
  let state = before;
  let first: LedgerEvent | null = null;
  for (const draft of events) {
    const place = {
      id: uuidV7(createdMs, context.random(UUID_V7_RANDOM_BYTES)),
      ledgerId: command.ledgerId,
      seq: state.seq + 1,
      prevHash: state.hash,
      createdAt,
      master: draft.masterId === null || master === null ? null : master.nextLink,
    };
    const { event, content } = sealEvent(draft, place, context.authority);
    state = applyToLedger(state, event);
    master?.apply(event);
    entries.push({
      seq: event.seq,
      prevHash: event.prevHash,
      hash: event.hash,
      row: formatRow(event, content),
      projections: projectionsOf(event, state.facts),
      event,
    });
    first ??= event;
  }
  if (first === null) throw new Error(`a ${command.kind} command wrote no event`);
  return { state, first };
}

function checkKey(command: Command, createdAt: string, reads: BatchReads): void {
  if (!asksForKeys(command)) return;
  const known: ActorKeys | undefined = reads.keys(command.actorId);
  if (known === undefined) throw new Error('a batch was decided without the keys of its author');
  const signature = command.signature;
  if (signature === null) {
    if (known.size > 0) {
      throw new LedgerError(
        'signature_required',
        'This actor has signing keys: sign the call (X-Signing-Key-ID, X-Actor-Sig).',
      );
    }
    return;
  }
  const life = known.get(signature.keyId);
  if (life === undefined) {
    throw new LedgerError('unknown_signing_key', 'X-Signing-Key-ID names no key of this actor: enrol it first.');
  }
  const { revokedAt } = life;
  if (life.isEnding === true || (revokedAt !== null && createdAt >= revokedAt)) {
    const details = revokedAt === null ? {} : { revoked_at: revokedAt };
    throw new LedgerError('signing_key_revoked', 'The signing key is revoked: sign with another key.', details);
  }
  if (createdAt < life.validFrom) {
    throw new LedgerError('unknown_signing_key', 'The signing key is not valid yet; retry in a moment.', {
      valid_from: life.validFrom,
    });
  }
}

/** `same` is false if the key was used for another call. */
function findWritten(
  keys: readonly CommandKey[],
  commands: ReadonlyMap<string, FoundCommand>,
): { readonly seq: number; readonly same: boolean } | null {
  let written: { readonly seq: number; readonly same: boolean } | null = null;
  for (const key of keys) {
    const found = commands.get(key.id);
    if (found === undefined) continue;
    if (found.fingerprint !== key.fingerprint) return { seq: found.seq, same: false };
    written = { seq: found.seq, same: true };
  }
  return written;
}
