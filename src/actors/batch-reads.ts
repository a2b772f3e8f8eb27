import { type Command, commandMaster } from '../domain/command.ts';
import type { CommandKey } from '../domain/event.ts';
import type { FoundCommand, LedgerStore } from '../store/ledger-store.ts';
import { keysReadAgeMaxMs } from './bounds.ts';
import type { Clock } from './clock.ts';
import type { LoadedMasters } from './loaded-masters.ts';
import type { MasterActor } from './master-actor.ts';
import type { PendingCommand } from './pending-command.ts';
import type { ActorKeys, SigningKeys } from './signing-keys.ts';

/** What a turn is decided with, beside the ledger's state. */
export interface BatchReads {
  /** Milliseconds since 1970. What is decided is dated then: the keys were looked at for this time, and for no later one. */
  readonly now: number;
  readonly masters: ReadonlyMap<string, MasterActor>;
  readonly commands: ReadonlyMap<string, FoundCommand>;
  /** The keys of an actor as they are known at this very moment. */
  keys(actorId: string): ActorKeys | undefined;
}

export interface BatchSources {
  readonly store: LedgerStore;
  readonly keys: SigningKeys;
  readonly clock: Clock;
  readonly masters: LoadedMasters;
  /** Marks that are known to be new are not looked for. */
  readonly isNew: (mark: CommandKey) => boolean;
}

/**
 * Reads what deciding these letters needs, side by side. When it resolves, what it read of keys is at most half a second old, and the
 * turn has to be decided at once; where that cannot be had, it ends with the letters' deadlines.
 */
export async function readForBatch(
  ledgerId: string,
  letters: readonly PendingCommand[],
  sources: BatchSources,
): Promise<BatchReads> {
  const { store, clock, keys, isNew } = sources;
  const signers: Signers = new Map();
  const masterIds = new Set<string>();
  const marks: CommandKey[] = [];
  for (const { command } of letters) {
    if (asksForKeys(command)) noteSigner(signers, command);
    const masterId = commandMaster(command);
    if (masterId !== null) masterIds.add(masterId);
    for (const mark of command.marks) if (!isNew(mark)) marks.push(mark);
  }
  const masters = new Map<string, MasterActor>();
  const loadMaster = async (masterId: string) => void masters.set(masterId, await sources.masters.get(masterId));
  const [read, commands] = await Promise.all([
    readKeys(keys, signers, clock),
    marks.length === 0 ? noCommands : store.findCommands(ledgerId, marks),
    ...Array.from(masterIds, loadMaster),
  ]);
  let now = clock.now();
  const lastDeadline = letters.reduce((last, { command }) => Math.max(last, command.deadline), 0);
  let known = knownKeys(keys, signers, read, now);
  while (known === null && now < lastDeadline) {
    const again = await readKeys(keys, signers, clock);
    now = clock.now();
    known = knownKeys(keys, signers, again, now);
  }
  // A change made on this node counts at once, so memory is asked again when the turn is decided.
  const keysOf = (actorId: string) => freshKeys(keys, actorId, signers.get(actorId)) ?? known?.get(actorId);
  return { now, masters, commands, keys: keysOf };
}

/** Whether a turn needs to know the keys of who asks. */
export function asksForKeys(command: Command): boolean {
  return command.signature !== null || command.signatureRule === 'if_keyed';
}

/** The keys that the letters name, by who is said to have signed with them. */
type Signers = Map<string, Set<string>>;

function noteSigner(signers: Signers, { actorId, signature }: Command): void {
  const named = signers.get(actorId) ?? new Set();
  if (signature !== null) named.add(signature.keyId);
  signers.set(actorId, named);
}

/** What memory holds, unless it lacks a key that is named: that may have been enrolled on another node a moment ago. */
function freshKeys(keys: SigningKeys, actorId: string, named: ReadonlySet<string> = noNames): ActorKeys | undefined {
  const fresh = keys.fresh(actorId);
  if (fresh === undefined) return undefined;
  for (const kid of named) if (!fresh.keys.has(kid)) return undefined;
  return fresh;
}

interface KeysRead {
  /** Milliseconds since 1970, from before the reading. */
  readonly begunAt: number;
  readonly found: ReadonlyMap<string, ActorKeys>;
}

/** Reads the keys that memory does not hold. */
async function readKeys(keys: SigningKeys, signers: Signers, clock: Clock): Promise<KeysRead> {
  const begunAt = clock.now();
  const found = new Map<string, ActorKeys>();
  const reads: Promise<void>[] = [];
  for (const [actorId, named] of signers) {
    if (freshKeys(keys, actorId, named) !== undefined) continue;
    reads.push(keys.read(actorId).then((read) => void found.set(actorId, read)));
  }
  if (reads.length > 0) await Promise.all(reads);
  return { begunAt, found };
}

/** The keys of all signers, from memory or as just read; null if some are known no more, or not well enough any longer. */
function knownKeys(
  keys: SigningKeys,
  signers: Signers,
  read: KeysRead,
  now: number,
): ReadonlyMap<string, ActorKeys> | null {
  const isRecent = now >= read.begunAt && now - read.begunAt <= keysReadAgeMaxMs;
  const known = new Map<string, ActorKeys>();
  for (const [actorId, named] of signers) {
    const held = freshKeys(keys, actorId, named) ?? (isRecent ? read.found.get(actorId) : undefined);
    if (held === undefined) return null;
    known.set(actorId, held);
  }
  return known;
}

const noCommands: ReadonlyMap<string, FoundCommand> = new Map();
const noNames: ReadonlySet<string> = new Set();
