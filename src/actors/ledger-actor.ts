import { type Command, commandMaster } from '../domain/command.ts';
import { LedgerError } from '../domain/errors.ts';
import type { CommandMark } from '../domain/event.ts';
import {
  applyToLedger,
  emptyLedger,
  type LedgerState,
  ledgerFoldVersion,
  ledgerStateFrom,
  ledgerStateJson,
} from '../domain/ledger-state.ts';
import { parseRow } from '../domain/row.ts';
import type { AuthoritySigner } from '../domain/seal.ts';
import {
  type Claim,
  Fenced,
  type FoundCommand,
  type LedgerEntry,
  type LedgerStore,
  OutcomeUnknown,
} from '../store/ledger-store.ts';
import {
  batchBytesMax,
  batchEventsMax,
  claimBackoffMaxMs,
  claimRacesBeforeBackoff,
  eventOverheadBytes,
  mailboxBytesMax,
  mailboxLettersMax,
  mastersInMemoryMax,
  replayPageEvents,
  snapshotEveryEvents,
} from './bounds.ts';
import type { Clock } from './clock.ts';
import { Lanes } from './lanes.ts';
import { type Letter, Mailbox } from './mailbox.ts';
import { MasterActor } from './master-actor.ts';
import type { Outbox } from './outbox.ts';
import type { Outcome } from './outcome.ts';
import type { ActorKeys, SigningKeys } from './signing-keys.ts';
import { decideTurn, type Turn } from './turn.ts';

/** What every ledger's actor of a node shares. */
export interface LedgerActorParts {
  readonly store: LedgerStore;
  readonly keys: SigningKeys;
  readonly authority: () => AuthoritySigner;
  readonly clock: Clock;
  readonly random: (bytes: number) => Uint8Array;
  readonly meter: ActorMeter;
  readonly outbox?: Outbox;
}

/** What the actors tell the metrics. */
export interface ActorMeter {
  committed(events: number, bytes: number, seconds: number): void;
  verdict(result: 'written' | 'replayed' | 'refused'): void;
  claimed(reason: 'activation' | 'fenced' | 'unknown_outcome'): void;
  fenced(): void;
  unknownOutcome(resolution: 'written' | 'not_written' | 'unsettled'): void;
  activated(seconds: number): void;
}

/**
 * One ledger in memory. It owns the ledger's mailbox, gives out seq, created_at and hash, and commits in groups: while one
 * write is in flight, whatever arrives forms the next batch.
 *
 * Invariants: one write in flight; `#state` is the fold of exactly what the store acknowledged under `#claim`; nothing is answered
 * before the store has acknowledged it, or, for a refusal, before the store has confirmed that claim and head still stand; whatever is
 * unexpected stops the actor for good, and the next command builds a new one from the log.
 */
export class LedgerActor {
  readonly ledgerId: string;
  readonly #parts: LedgerActorParts;
  readonly #mailbox = new Mailbox({ lettersMax: mailboxLettersMax, bytesMax: mailboxBytesMax });
  readonly #masters = new Map<string, MasterActor>();
  /** Marks of commands that wait or are in flight, with their letters. */
  readonly #lanes = new Lanes();
  readonly #running = new Map<string, { readonly fingerprint: string; readonly outcome: Promise<Outcome> }>();
  #claim: Claim | null = null;
  #state: LedgerState = emptyLedger;
  #snapshotSeq = -1;
  #busy = false;
  #stopped = false;
  #lastUsed: number;
  #lostRaces = 0;

  constructor(ledgerId: string, parts: LedgerActorParts) {
    this.ledgerId = ledgerId;
    this.#parts = parts;
    this.#lastUsed = parts.clock.now();
  }

  /** No more commands are taken; a new actor has to be made. */
  get stopped(): boolean {
    return this.#stopped;
  }

  get idleSince(): number | null {
    return this.#busy || this.#mailbox.size > 0 ? null : this.#lastUsed;
  }

  get waiting(): number {
    return this.#mailbox.size;
  }

  /** Carries a command out: its outcome, or the LedgerError that it is refused with. */
  submit(command: Command): Promise<Outcome> {
    const refusal = this.#lanes.enter(command.lane);
    if (refusal !== null) return Promise.reject(refusal);
    if (command.marks.length === 0) return this.#enqueue(command);
    for (const mark of command.marks) {
      const twin = this.#running.get(mark.id);
      if (twin !== undefined) return joinTwin(twin, mark, command.resubmitted === true);
    }
    const outcome = this.#enqueue(command);
    for (const mark of command.marks) this.#running.set(mark.id, { fingerprint: mark.fingerprint, outcome });
    const done = () => {
      for (const mark of command.marks) this.#running.delete(mark.id);
    };
    outcome.then(done, done);
    return outcome;
  }

  #enqueue(command: Command): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const bytes = eventOverheadBytes + (command.kind === 'append_event' ? command.payload.length : 0);
      try {
        this.#mailbox.push({ command, bytes, resolve, reject });
      } catch (full) {
        this.#lanes.breakOff(command.lane);
        throw full;
      }
      if (!this.#busy) {
        this.#busy = true;
        void this.#run();
      }
    });
  }

  /** Takes the actor out of memory if it has nothing to do: saves what makes the next activation short. True if it is gone. */
  passivate(): boolean {
    if (this.#busy || this.#mailbox.size > 0) return false;
    this.#stopped = true;
    this.#saveSnapshots(this.#masters.values(), true);
    return true;
  }

  async #run(): Promise<void> {
    // What arrives in the same tick of the event loop joins the first batch.
    await Promise.resolve();
    while (this.#mailbox.size > 0 && !this.#stopped) {
      const letters = this.#mailbox.take(batchEventsMax, batchBytesMax);
      try {
        await this.#settle(letters);
      } catch (error) {
        this.#stop(letters, error);
      }
    }
    this.#lastUsed = this.#parts.clock.now();
    this.#busy = false;
  }

  /** Works on one batch until each of its letters has its answer. */
  async #settle(batch: Letter[]): Promise<void> {
    let letters = batch;
    while (letters.length > 0) {
      letters = this.#dropLate(letters);
      if (letters.length === 0) return;
      const claim = this.#claim ?? (await this.#activate('activation'));
      const turn = await this.#decide(letters);
      const result = await this.#write(claim, turn);
      switch (result) {
        case 'stands':
          this.#lostRaces = 0;
          if (turn.entries.length > 0) this.#parts.outbox?.committed(this.ledgerId, turn.entries);
          await this.#answer(turn);
          return;
        case 'lost':
          this.#parts.meter.fenced();
          this.#forget();
          await this.#backOff();
          await this.#activate('fenced');
          break;
        case 'stopped':
          return;
      }
    }
  }

  /** Commands whose time is up before they were sent are dropped, with those behind them in their lane: certain not to be written. */
  #dropLate(letters: Letter[]): Letter[] {
    const now = this.#parts.clock.now();
    if (letters.every(({ command }) => command.deadline > now && !this.#lanes.isBroken(command.lane))) return letters;
    const inTime: Letter[] = [];
    for (const letter of letters) {
      const { deadline, lane } = letter.command;
      if (deadline > now && !this.#lanes.isBroken(lane)) {
        inTime.push(letter);
        continue;
      }
      this.#lanes.breakOff(lane);
      letter.reject(new LedgerError('unavailable', 'The call waited too long and was not written; retry it.'));
    }
    return inTime;
  }

  async #activate(reason: 'activation' | 'fenced' | 'unknown_outcome'): Promise<Claim> {
    const started = this.#parts.clock.now();
    const store = this.#parts.store;
    const claim = await store.claim(this.ledgerId);
    this.#parts.meter.claimed(reason);
    let state = await this.#fromSnapshot();
    this.#snapshotSeq = state.seq;
    const headSeq = claim.head?.seq ?? -1;
    while (state.seq < headSeq) {
      const page = await store.read(this.ledgerId, state.seq + 1, replayPageEvents);
      for (const entry of page) {
        const event = parseRow(entry.row);
        if (event.seq !== state.seq + 1 || event.prevHash !== state.hash) {
          throw new Error(`ledger ${this.ledgerId}: the chain is broken at seq ${entry.seq}`);
        }
        state = applyToLedger(state, event);
        if (state.seq === headSeq) break;
      }
      if (page.length === 0) throw new Error(`ledger ${this.ledgerId}: events up to the head are missing`);
    }
    if (state.hash !== (claim.head?.hash ?? ''))
      throw new Error(`ledger ${this.ledgerId}: the head is not the newest event`);
    this.#claim = claim;
    this.#state = state;
    this.#parts.meter.activated((this.#parts.clock.now() - started) / 1_000);
    return claim;
  }

  async #fromSnapshot(): Promise<LedgerState> {
    const store = this.#parts.store;
    const snapshot = await store.snapshot(this.ledgerId);
    if (snapshot === null || snapshot.foldVersion !== ledgerFoldVersion) return emptyLedger;
    const [entry] = await store.read(this.ledgerId, snapshot.seq, 1);
    if (entry === undefined || entry.seq !== snapshot.seq || parseRow(entry.row).hash !== snapshot.hash)
      return emptyLedger;
    return ledgerStateFrom(snapshot.state);
  }

  /** Forgets claim and state: they are read anew before the next decision. */
  #forget(): void {
    this.#claim = null;
    this.#state = emptyLedger;
    this.#masters.clear();
  }

  /** Reads what deciding needs, then decides in one go. */
  async #decide(letters: readonly Letter[]): Promise<Turn> {
    const parts = this.#parts;
    const keys = new Map<string, ActorKeys>();
    const masters = new Map<string, MasterActor>();
    const marks: string[] = [];
    const reads: Promise<void>[] = [];
    for (const { command } of letters) {
      for (const mark of command.marks) marks.push(mark.id);
      if (asksForKeys(command) && !keys.has(command.actorId)) this.#readKeys(command.actorId, keys, reads);
      const masterId = commandMaster(command);
      if (masterId !== null && !masters.has(masterId)) this.#loadMaster(masterId, masters, reads);
    }
    let commands: ReadonlyMap<string, FoundCommand> = noCommands;
    if (marks.length > 0) {
      const lookUp = async () => {
        commands = await parts.store.findCommands(this.ledgerId, marks);
      };
      reads.push(lookUp());
    }
    if (reads.length > 0) await Promise.all(reads);
    const context = {
      masters,
      commands,
      keys,
      authority: parts.authority(),
      now: parts.clock.now(),
      random: parts.random,
    };
    try {
      return decideTurn(this.#state, letters, context);
    } catch (error) {
      for (const master of masters.values()) master.discard();
      throw error;
    }
  }

  #readKeys(actorId: string, keys: Map<string, ActorKeys>, reads: Promise<void>[]): void {
    const fresh = this.#parts.keys.fresh(actorId);
    if (fresh !== undefined) {
      keys.set(actorId, fresh);
      return;
    }
    keys.set(actorId, { keys: new Map() });
    reads.push(this.#parts.keys.read(actorId).then((read) => void keys.set(actorId, read)));
  }

  #loadMaster(masterId: string, masters: Map<string, MasterActor>, reads: Promise<void>[]): void {
    const loaded = this.#masters.get(masterId);
    if (loaded !== undefined) {
      masters.set(masterId, loaded);
      // Moves it to the end of the order in which masters leave memory.
      this.#masters.delete(masterId);
      this.#masters.set(masterId, loaded);
      return;
    }
    const load = async () => {
      const master = await MasterActor.load(this.#parts.store, this.ledgerId, masterId);
      masters.set(masterId, master);
      this.#masters.set(masterId, master);
    };
    reads.push(load());
  }

  /**
   * Makes a turn's entries durable, or, where there are only refusals, confirms the state they rest on.
   * 'lost': nothing of the turn is in the log, and the state it was decided on does not stand.
   */
  async #write(claim: Claim, turn: Turn): Promise<'stands' | 'lost' | 'stopped'> {
    const { store, clock, meter } = this.#parts;
    if (turn.entries.length === 0) {
      if (turn.verdicts.every((verdict) => verdict.kind === 'replayed')) return 'stands';
      const head = this.#state.seq < 0 ? null : { seq: this.#state.seq, hash: this.#state.hash };
      return (await store.stands(claim, head)) ? 'stands' : 'lost';
    }
    const started = clock.now();
    const watch = this.#watchDeadlines(turn);
    try {
      await store.append(claim, turn.entries);
    } catch (error) {
      if (error instanceof Fenced) return 'lost';
      if (error instanceof OutcomeUnknown) return await this.#settleUnknown(turn);
      throw error;
    } finally {
      watch();
    }
    meter.committed(turn.entries.length, bytesOf(turn.entries), (clock.now() - started) / 1_000);
    this.#state = turn.state;
    for (const master of turn.masters.values()) master.commit();
    return 'stands';
  }

  /** While a write is in flight: whose deadline passes is told that the outcome is unknown. */
  #watchDeadlines(turn: Turn): () => void {
    const clock = this.#parts.clock;
    let cancel = () => {};
    const arm = () => {
      const now = clock.now();
      let next = Number.POSITIVE_INFINITY;
      for (const { letter } of turn.verdicts) {
        if (letter.command.deadline <= now) letter.reject(outcomeUnknown());
        else next = Math.min(next, letter.command.deadline);
      }
      if (next !== Number.POSITIVE_INFINITY) cancel = clock.after(next - now + 1, arm);
    };
    const last = turn.verdicts[0]?.letter.command.deadline ?? 0;
    cancel = clock.after(Math.max(1, last - clock.now() + 1), arm);
    return () => cancel();
  }

  /**
   * A new claim shuts the write out or finds it done: then it is certain. Until it is, the ledger accepts no other write; past the last
   * deadline everybody has been told `outcome_unknown`, and the actor stops.
   */
  async #settleUnknown(turn: Turn): Promise<'stands' | 'lost' | 'stopped'> {
    const { store, clock, meter } = this.#parts;
    const first = turn.entries[0] as LedgerEntry;
    const lastDeadline = Math.max(...turn.verdicts.map(({ letter }) => letter.command.deadline));
    this.#forget();
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#activate('unknown_outcome');
        const [entry] = await store.read(this.ledgerId, first.seq, 1);
        const written = entry !== undefined && entry.seq === first.seq && parseRow(entry.row).hash === first.hash;
        meter.unknownOutcome(written ? 'written' : 'not_written');
        return written ? 'stands' : 'lost';
      } catch (error) {
        if (!(error instanceof LedgerError) || clock.now() >= lastDeadline) {
          meter.unknownOutcome('unsettled');
          this.#stop(
            turn.verdicts.map(({ letter }) => letter),
            outcomeUnknown(),
          );
          return 'stopped';
        }
        await sleep(clock, Math.min(claimBackoffMaxMs, 10 * 2 ** attempt));
      }
    }
  }

  async #answer(turn: Turn): Promise<void> {
    const { store, meter } = this.#parts;
    for (const verdict of turn.verdicts) {
      meter.verdict(verdict.kind);
      switch (verdict.kind) {
        case 'written':
          verdict.letter.resolve({ event: verdict.event, replayed: false });
          break;
        case 'refused':
          verdict.letter.reject(verdict.error);
          break;
        case 'replayed': {
          const [entry] = await store.read(this.ledgerId, verdict.seq, 1);
          if (entry === undefined) throw new Error(`ledger ${this.ledgerId}: seq ${verdict.seq} is missing`);
          verdict.letter.resolve({ event: parseRow(entry.row), replayed: true });
          break;
        }
      }
    }
    this.#saveSnapshots(turn.masters.values(), false);
    this.#forgetOldMasters();
  }

  #saveSnapshots(masters: Iterable<MasterActor>, always: boolean): void {
    const { store } = this.#parts;
    const state = this.#state;
    const tail = state.seq - this.#snapshotSeq;
    if (tail > 0 && (always || tail >= snapshotEveryEvents)) {
      this.#snapshotSeq = state.seq;
      const snapshot = {
        foldVersion: ledgerFoldVersion,
        seq: state.seq,
        hash: state.hash,
        state: ledgerStateJson(state),
      };
      // A snapshot that was not saved is only a longer replay.
      store.saveSnapshot(this.ledgerId, snapshot).catch(() => {});
    }
    for (const master of masters) master.saveSnapshot(store, always);
  }

  #forgetOldMasters(): void {
    for (const [masterId, master] of this.#masters) {
      if (this.#masters.size <= mastersInMemoryMax) return;
      master.saveSnapshot(this.#parts.store, true);
      this.#masters.delete(masterId);
    }
  }

  /** Two owners that take the claim from each other in turns each wait a while, so that both get on. */
  async #backOff(): Promise<void> {
    this.#lostRaces += 1;
    if (this.#lostRaces <= claimRacesBeforeBackoff) return;
    const [byte = 0] = this.#parts.random(1);
    await sleep(this.#parts.clock, Math.ceil((claimBackoffMaxMs * (byte + 1)) / 256));
  }

  /** Crash-only: whoever waits is told what is certain, and the actor is never used again. */
  #stop(letters: readonly Letter[], cause: unknown): void {
    this.#stopped = true;
    this.#forget();
    const error =
      cause instanceof LedgerError
        ? cause
        : new LedgerError(
            'internal',
            'Something went wrong here; the call may be retried with its Idempotency-Key.',
            {},
            cause,
          );
    for (const letter of letters) letter.reject(error);
    const waiting = new LedgerError(
      'unavailable',
      'The ledger is being loaded again; nothing was written, retry.',
      {},
      cause,
    );
    for (const letter of this.#mailbox.drain()) letter.reject(waiting);
  }
}

const noCommands: ReadonlyMap<string, FoundCommand> = new Map();

function asksForKeys(command: Command): boolean {
  return command.signature !== null || command.signatureRule === 'if_keyed';
}

function joinTwin(
  twin: { fingerprint: string; outcome: Promise<Outcome> },
  mark: CommandMark,
  resubmitted: boolean,
): Promise<Outcome> {
  if (twin.fingerprint !== mark.fingerprint) {
    return Promise.reject(
      new LedgerError(
        'idempotency_key_reused',
        'This Idempotency-Key was used for another call: use a new key for each new call.',
      ),
    );
  }
  if (resubmitted) return twin.outcome;
  return Promise.reject(
    new LedgerError(
      'idempotency_in_progress',
      'The first call with this Idempotency-Key is still running: ask again in a moment.',
    ),
  );
}

function outcomeUnknown(): LedgerError {
  return new LedgerError(
    'outcome_unknown',
    'The event may or may not have been written: retry with the same Idempotency-Key to learn which.',
  );
}

function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.after(delayMs, resolve));
}

function bytesOf(entries: readonly LedgerEntry[]): number {
  return entries.reduce((sum, entry) => sum + entry.row.length, 0);
}
