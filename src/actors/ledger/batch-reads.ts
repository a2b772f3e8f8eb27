import type { CommandKey } from '../../domain/event/event.ts';
import { type Command, commandMaster } from '../../domain/ledger/command.ts';
import type { Clock } from '../../runtime/clock/clock.ts';
import type { FoundCommand, LedgerStore } from '../../store/ledger-store.ts';
import { keysReadAgeMaxMs } from '../bounds.ts';
import type { PendingCommand } from '../inbox/pending-command.ts';
import type { LoadedMasters } from './loaded-masters.ts';
import type { MasterActor } from './master-actor.ts';
import type { ActorKeys, SigningKeys } from './signing-keys.ts';

/** What a batch is decided with, beside the ledger's state. */
export interface BatchReads {
  /** ms since 1970. The events get this date: the keys were looked up for it, and for no later time. */
  readonly now: number;
  readonly masters: ReadonlyMap<string, MasterActor>;
  readonly commands: ReadonlyMap<string, FoundCommand>;
  keys(actorId: string): ActorKeys | undefined;
}

interface BatchSources {
  readonly store: LedgerStore;
  readonly keys: SigningKeys;
  readonly clock: Clock;
  readonly masters: LoadedMasters;
}

/**
 * Reads what deciding a batch needs, all at once. The batch must be decided at once: the signing keys were read at most
 * half a second ago. Keys that stay older are read again until the last deadline of the batch.
 */
export async function readForBatch(
  ledgerId: string,
  batch: readonly PendingCommand[],
  sources: BatchSources,
): Promise<BatchReads> {
  const { store, clock, keys } = sources;
  const signers: Signers = new Map();
  const masterIds = new Set<string>();
  const commandKeys: CommandKey[] = [];
  for (const { command } of batch) {
    if (asksForKeys(command)) noteSigner(signers, command);
    const masterId = commandMaster(command);
    if (masterId !== null) masterIds.add(masterId);
    commandKeys.push(...command.commandKeys);
  }
  const masters = new Map<string, MasterActor>();
  const loadMaster = async (masterId: string) => void masters.set(masterId, await sources.masters.get(masterId));
  const [read, commands] = await Promise.all([
    readKeys(keys, signers, clock),
    commandKeys.length === 0 ? noCommands : store.findCommands(ledgerId, commandKeys),
    ...Array.from(masterIds, loadMaster),
  ]);
  let now = clock.now();
  const lastDeadline = batch.reduce((last, { command }) => Math.max(last, command.deadline), 0);
  let known = knownKeys(keys, signers, read, now);
  while (known === null && now < lastDeadline) {
    const again = await readKeys(keys, signers, clock);
    now = clock.now();
    known = knownKeys(keys, signers, again, now);
  }
  // A change made on this node counts at once, so memory is asked again when the batch is decided. An end counts even
  // if the actor has left memory meanwhile.
  const keysOf = (actorId: string): ActorKeys | undefined => {
    const held = freshKeys(keys, actorId, signers.get(actorId)) ?? known?.get(actorId);
    return held === undefined ? undefined : keys.withEnds(actorId, held);
  };
  return { now, masters, commands, keys: keysOf };
}

export function asksForKeys(command: Command): boolean {
  return command.signature !== null || command.signatureRule === 'if_keyed';
}

/** The key ids that the commands name, by the actor that is said to have signed. */
type Signers = Map<string, Set<string>>;

function noteSigner(signers: Signers, { actorId, signature }: Command): void {
  const named = signers.get(actorId) ?? new Set();
  if (signature !== null) named.add(signature.keyId);
  signers.set(actorId, named);
}

/** The keys in memory. undefined if a named key is missing: another node may just have enrolled it. */
function freshKeys(keys: SigningKeys, actorId: string, named: ReadonlySet<string> = noNames): ActorKeys | undefined {
  const fresh = keys.fresh(actorId);
  if (fresh === undefined) return undefined;
  for (const kid of named) if (!fresh.has(kid)) return undefined;
  return fresh;
}

interface KeysRead {
  readonly begunAt: number;
  readonly found: ReadonlyMap<string, ActorKeys>;
}

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

/** The keys of all signers, from memory or as just read. null if some are missing or too old. */
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
