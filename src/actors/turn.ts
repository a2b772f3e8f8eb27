import type { Command } from '../domain/command.ts';
import { commandMaster } from '../domain/command.ts';
import { decide } from '../domain/decide.ts';
import { LedgerError } from '../domain/errors.ts';
import type { CommandMark, LedgerEvent } from '../domain/event.ts';
import { applyToLedger, type LedgerState } from '../domain/ledger-state.ts';
import { projectionsOf } from '../domain/projection.ts';
import { formatRow } from '../domain/row.ts';
import { type AuthoritySigner, sealEvent } from '../domain/seal.ts';
import { isoTime } from '../domain/time.ts';
import { uuidV7 } from '../domain/uuid.ts';
import type { FoundCommand, LedgerEntry } from '../store/ledger-store.ts';
import type { Letter } from './mailbox.ts';
import type { MasterActor } from './master-actor.ts';
import type { ActorKeys } from './signing-keys.ts';

/** What was read before a turn, so that deciding needs no waiting. */
export interface TurnContext {
  readonly masters: ReadonlyMap<string, MasterActor>;
  readonly commands: ReadonlyMap<string, FoundCommand>;
  readonly keys: ReadonlyMap<string, ActorKeys>;
  readonly authority: AuthoritySigner;
  /** Milliseconds since 1970. */
  readonly now: number;
  random(bytes: number): Uint8Array;
}

/** What a turn made of one letter. */
export type Verdict =
  /** Its events are in the batch; the first of them is its outcome. */
  | { readonly kind: 'written'; readonly letter: Letter; readonly event: LedgerEvent }
  /** The same command was written before, at this seq. */
  | { readonly kind: 'replayed'; readonly letter: Letter; readonly seq: number }
  /** Refused on the strength of the ledger's state: to be answered only once that state is confirmed. */
  | { readonly kind: 'refused'; readonly letter: Letter; readonly error: LedgerError };

export interface Turn {
  readonly verdicts: readonly Verdict[];
  readonly entries: readonly LedgerEntry[];
  /** The ledger's state behind the last entry. */
  readonly state: LedgerState;
  /** The masters that the turn was decided with. */
  readonly masters: ReadonlyMap<string, MasterActor>;
}

/**
 * Decides letters one by one, each against the committed state folded with this batch's earlier entries: so a revocation
 * shuts out the append behind it in the same batch. A refused command adds nothing. The masters' working states run ahead; the
 * caller commits or discards them. No I/O, no waiting.
 */
export function decideTurn(committed: LedgerState, letters: readonly Letter[], context: TurnContext): Turn {
  const entries: LedgerEntry[] = [];
  const verdicts: Verdict[] = [];
  let state = committed;
  for (const letter of letters) {
    const twin = findTwin(letter.command.marks, context.commands);
    if (twin !== null) {
      verdicts.push(
        twin.same ? { kind: 'replayed', letter, seq: twin.seq } : { kind: 'refused', letter, error: keyReused() },
      );
      continue;
    }
    const before = state;
    const firstEntry = entries.length;
    try {
      state = decideOne(state, letter, context, entries);
      const event = writtenEvents.get(entries[firstEntry] as LedgerEntry);
      if (event === undefined) throw new Error(`a ${letter.command.kind} command wrote no event`);
      verdicts.push({ kind: 'written', letter, event });
    } catch (error) {
      if (!(error instanceof LedgerError) || entries.length > firstEntry) throw error;
      state = before;
      verdicts.push({ kind: 'refused', letter, error });
    }
  }
  return { verdicts, entries, state, masters: context.masters };
}

/** The event of an entry of this turn, so that it need not be parsed again to be answered. */
const writtenEvents = new WeakMap<LedgerEntry, LedgerEvent>();

function decideOne(before: LedgerState, letter: Letter, context: TurnContext, entries: LedgerEntry[]): LedgerState {
  const command = letter.command;
  const createdMs = Math.max(context.now, before.createdAt === '' ? 0 : Date.parse(before.createdAt));
  const createdAt = isoTime(createdMs);
  checkKey(command, createdAt, context.keys);
  const masterId = commandMaster(command);
  const master = masterId === null ? null : (context.masters.get(masterId) ?? null);
  const drafts = decide(before, master?.working ?? null, command, createdAt);
  let state = before;
  for (const draft of drafts) {
    const place = {
      id: uuidV7(createdMs, context.random(10)),
      ledgerId: command.ledgerId,
      seq: state.seq + 1,
      prevHash: state.hash,
      createdAt,
      master: draft.masterId === null || master === null ? null : master.nextLink,
    };
    const { event, content } = sealEvent(draft, place, context.authority);
    state = applyToLedger(state, event);
    master?.apply(event);
    const entry: LedgerEntry = {
      seq: event.seq,
      prevHash: event.prevHash,
      hash: event.hash,
      row: formatRow(event, content),
      projections: projectionsOf(event, state.facts),
    };
    writtenEvents.set(entry, event);
    entries.push(entry);
  }
  return state;
}

/** The key must be good at the very time that the event will carry (decisions.md, section 4). */
function checkKey(command: Command, createdAt: string, keys: ReadonlyMap<string, ActorKeys>): void {
  const known = keys.get(command.actorId);
  const signature = command.signature;
  if (signature === null) {
    if (command.signatureRule === 'if_keyed' && known !== undefined && known.keys.size > 0) {
      throw new LedgerError(
        'signature_required',
        'This actor has signing keys: sign the call (X-Signing-Key-ID, X-Actor-Sig).',
      );
    }
    return;
  }
  const life = known?.keys.get(signature.keyId);
  if (life === undefined) {
    throw new LedgerError('unknown_signing_key', 'X-Signing-Key-ID names no key of this actor: enrol it first.');
  }
  if (life.revokedAt !== null && createdAt >= life.revokedAt) {
    throw new LedgerError('signing_key_revoked', 'The signing key is revoked: sign with another key.', {
      revoked_at: life.revokedAt,
    });
  }
  if (createdAt < life.validFrom) {
    throw new LedgerError('unknown_signing_key', 'The signing key is not valid yet; retry in a moment.', {
      valid_from: life.validFrom,
    });
  }
}

/** The command of the same name that was written before. Another fingerprint under any of its names is a key used twice. */
function findTwin(
  marks: readonly CommandMark[],
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

function keyReused(): LedgerError {
  return new LedgerError(
    'idempotency_key_reused',
    'This Idempotency-Key was used for another call: use a new key for each new call.',
  );
}
