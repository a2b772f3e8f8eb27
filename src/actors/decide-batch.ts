import type { Command, Lane } from '../domain/command.ts';
import { commandMaster } from '../domain/command.ts';
import { decide } from '../domain/decide.ts';
import { LedgerError } from '../domain/errors.ts';
import type { CommandKey, LedgerEvent } from '../domain/event.ts';
import { applyToLedger, type LedgerState } from '../domain/ledger-state.ts';
import { projectionsOf } from '../domain/projection.ts';
import { formatRow } from '../domain/row.ts';
import { type AuthoritySigner, sealEvent } from '../domain/seal.ts';
import { isoTime } from '../domain/time.ts';
import { UUID_V7_RANDOM_BYTES, uuidV7 } from '../domain/uuid.ts';
import type { FoundCommand, LedgerEntry } from '../store/ledger-store.ts';
import { asksForKeys, type BatchReads } from './batch-reads.ts';
import { keyReused } from './in-flight-commands.ts';
import type { MasterActor } from './master-actor.ts';
import type { PendingCommand } from './pending-command.ts';
import { refusedAgain } from './refusals.ts';
import type { ActorKeys } from './signing-keys.ts';

/** What a turn needs, so that deciding needs no waiting. */
export interface BatchContext {
  readonly reads: BatchReads;
  readonly authority: AuthoritySigner;
  random(bytes: number): Uint8Array;
}

/** What a turn made of one letter. */
export type CommandResult =
  /** Its events are in the batch; the first of them is its outcome. */
  | { readonly kind: 'written'; readonly letter: PendingCommand; readonly event: LedgerEvent }
  /** The same command was written before, at this seq. */
  | { readonly kind: 'replayed'; readonly letter: PendingCommand; readonly seq: number }
  /** Refused on the strength of the ledger's state: to be answered only once that state is confirmed. */
  | { readonly kind: 'refused'; readonly letter: PendingCommand; readonly error: LedgerError };

export interface DecidedBatch {
  readonly verdicts: readonly CommandResult[];
  readonly entries: readonly LedgerEntry[];
  /** Not decided yet: each stands behind one of its lane that is refused, which has to be told first. In their order. */
  readonly deferred: readonly PendingCommand[];
  /** The ledger's state behind the last entry. */
  readonly state: LedgerState;
  /** The masters that the turn was decided with. */
  readonly masters: ReadonlyMap<string, MasterActor>;
}

/** Deciding one letter failed in a way that nobody foresaw: the turn is void, and the other letters had no part in it. */
export class BatchFailed extends Error {
  readonly letter: PendingCommand;

  constructor(letter: PendingCommand, cause: unknown) {
    super('a command could not be decided', { cause });
    this.name = 'TurnFailed';
    this.letter = letter;
  }
}

/**
 * Decides letters one by one, each against the committed state folded with this batch's earlier entries: so a revocation
 * shuts out the append behind it in the same batch. A refused command adds nothing, and nothing behind it in its lane is written before it
 * was told: it may come to be told that it is to be sent again. The masters' working states run ahead; the caller commits them or forgets
 * the masters. No I/O, no waiting. Throws TurnFailed.
 */
export function decideBatch(
  committed: LedgerState,
  letters: readonly PendingCommand[],
  context: BatchContext,
): DecidedBatch {
  const entries: LedgerEntry[] = [];
  const verdicts: CommandResult[] = [];
  const deferred: PendingCommand[] = [];
  /** Lanes of which something is refused, and those of which something is deferred behind that. */
  const refusedLanes = new Set<string>();
  const deferredLanes = new Set<string>();
  let state = committed;
  const refuse = (letter: PendingCommand, error: LedgerError) => {
    const { lane } = letter.command;
    if (lane) refusedLanes.add(lane.id);
    verdicts.push({ kind: 'refused', letter, error });
  };
  const defer = (letter: PendingCommand, lane: Lane) => {
    deferredLanes.add(lane.id);
    deferred.push(letter);
  };
  for (const letter of letters) {
    const { command } = letter;
    const { lane } = command;
    const twin = findTwin(command.marks, context.reads.commands);
    if (twin !== null) {
      if (twin.same) verdicts.push({ kind: 'replayed', letter, seq: twin.seq });
      else refuse(letter, keyReused());
      continue;
    }
    if (lane && deferredLanes.has(lane.id)) {
      defer(letter, lane);
      continue;
    }
    const place = entries.length;
    try {
      const draft = draftOne(state, command, context);
      if (lane && refusedLanes.has(lane.id)) {
        defer(letter, lane);
        continue;
      }
      const decided = sealOne(state, command, draft, context, entries);
      verdicts.push({ kind: 'written', letter, event: decided.first });
      state = decided.state;
    } catch (error) {
      if (!(error instanceof LedgerError) || entries.length > place) throw new BatchFailed(letter, error);
      refuse(letter, command.resubmitted === true ? refusedAgain(error) : error);
    }
  }
  return { verdicts, entries, deferred, state, masters: context.reads.masters };
}

interface Draft {
  readonly createdMs: number;
  readonly createdAt: string;
  readonly master: MasterActor | null;
  readonly events: ReturnType<typeof decide>;
}

/** The events that a command makes. Throws the LedgerError that it is refused with. */
function draftOne(before: LedgerState, command: Command, { reads }: BatchContext): Draft {
  const createdMs = Math.max(reads.now, before.createdAt === '' ? 0 : Date.parse(before.createdAt));
  const createdAt = isoTime(createdMs);
  checkKey(command, createdAt, reads);
  const masterId = commandMaster(command);
  const master = masterId === null ? null : (reads.masters.get(masterId) ?? null);
  return { createdMs, createdAt, master, events: decide(before, master?.working ?? null, command, createdAt) };
}

/** Adds a command's entries; the state behind them, and the first of its events. */
function sealOne(
  before: LedgerState,
  command: Command,
  { createdMs, createdAt, master, events }: Draft,
  context: BatchContext,
  entries: LedgerEntry[],
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
    });
    first ??= event;
  }
  if (first === null) throw new Error(`a ${command.kind} command wrote no event`);
  return { state, first };
}

/** The key must be good at the very time that the event will carry (decisions.md, section 4). */
function checkKey(command: Command, createdAt: string, reads: BatchReads): void {
  if (!asksForKeys(command)) return;
  const known: ActorKeys | undefined = reads.keys(command.actorId);
  if (known === undefined) throw new Error('a turn was decided without the keys of who asks');
  const signature = command.signature;
  if (signature === null) {
    if (known.keys.size > 0) {
      throw new LedgerError(
        'signature_required',
        'This actor has signing keys: sign the call (X-Signing-Key-ID, X-Actor-Sig).',
      );
    }
    return;
  }
  const life = known.keys.get(signature.keyId);
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

/** The command of the same name that was written before. Another fingerprint under any of its names is a key used twice. */
function findTwin(
  marks: readonly CommandKey[],
  commands: ReadonlyMap<string, FoundCommand>,
): { readonly seq: number; readonly same: boolean } | null {
  let twin: { readonly seq: number; readonly same: boolean } | null = null;
  for (const mark of marks) {
    const found = commands.get(mark.id);
    if (found === undefined) continue;
    if (found.fingerprint !== mark.fingerprint) return { seq: found.seq, same: false };
    twin = { seq: found.seq, same: true };
  }
  return twin;
}
