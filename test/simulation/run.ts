import type { LedgerEvent } from '../../src/domain/event/event.ts';
import { parseRow } from '../../src/domain/event/row.ts';
import type { Log } from '../../src/service/proofs/proven-logs.ts';
import { CassandraLedgerStore } from '../../src/store/cassandra/log/ledger-store.ts';
import { findLogEnd } from '../../src/store/cassandra/log/log-end.ts';
import { CassandraSignedHeads } from '../../src/store/cassandra/trees/signed-heads.ts';
import { append, commandKey } from '../support/commands.ts';
import { HistoryBook } from '../support/history/history.ts';
import { checkHistory, type Violation } from '../support/history/history-check.ts';
import { checkNotes, checkProofs, type Era, neighbours } from '../support/history/notes-check.ts';
import { checkProjected } from '../support/history/projection-check.ts';
import { type PlantedBug, settledByCheckpoints } from './bugs.ts';
import { directSession } from './cassandra.ts';
import { type ClientParts, runClient, send } from './clients.ts';
import { firstMasters, ledgerIds, Wishes } from './commands.ts';
import { Faults, heal } from './faults.ts';
import { damageRows, makeLong } from './long-ledger.ts';
import { type Counts, SimulatedNode, type World } from './node.ts';
import { NoteBook } from './notes.ts';
import { newLogsOfRun, simulatedCheckpoints } from './proofs.ts';
import { SeededRandom } from './random.ts';
import { SimulatedRedis } from './redis.ts';
import { restoreKindOf, restoreTimeAndAgain } from './restores.ts';
import { SimulatedTables } from './tables.ts';
import { SimulatedTime } from './time.ts';
import { healthyWire } from './wire.ts';

const nodesMin = 3;
export const commandsPerSeed = 300;
export const faultsPerSeed = 10;
const clients = 8;
const startMs = Date.parse('2026-11-21T00:00:00.000Z');
/** Faults begin within this time; what 300 commands take where nothing fails. */
const faultsWithinMs = 1_600;
const endsWithinMs = 60_000;
/** The deadline of one more event. No other command has a later one. */
const oneMoreWithinMs = 5_000;
/** Of the runs in which a tile becomes full. */
const longShare = 0.125;
/** Pairs of checkpoints that are proven from what is stored at the end. */
const proofsPerSeed = 3;

export interface RunResult {
  readonly seed: number;
  readonly violations: readonly Violation[];
  /** Those that took effect, in words. */
  readonly faults: readonly string[];
  readonly counts: Counts & {
    readonly written: number;
    readonly refused: number;
    readonly notWritten: number;
    readonly unclear: number;
  };
  /** Everything that clients saw, in order: two runs of a seed are the same run if these are. */
  readonly transcript: string;
}

/** Runs one seed from an empty store to the checks. All that happens in it follows from the seed (and the bug). */
export async function runSeed(seed: number, bug: PlantedBug | null = null): Promise<RunResult> {
  const time = new SimulatedTime(startMs);
  const restore = time.install();
  // Every refusal would pay for a trace that nobody reads.
  const traceLimit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return await run(seed, time, bug);
  } finally {
    // The budget of the event loop is the whole process's: what it has planned in this time has to happen in it.
    await time.pass(time.now, () => false);
    Error.stackTraceLimit = traceLimit;
    restore();
  }
}

async function run(seed: number, time: SimulatedTime, bug: PlantedBug | null): Promise<RunResult> {
  const world = worldOf(seed, time, bug);
  const { random, counts } = world;
  const faults = new Faults(world);
  const wishes = new Wishes(random);
  // Callers go on until so many faults have met them.
  const hasMore = () => wishes.made < commandsPerSeed || faults.effective.length < faultsPerSeed;
  const parts: ClientParts = { world, wishes, book: new HistoryBook(), notes: new NoteBook(), hasMore };
  const restores = world.hasCheckpoints ? restoreKindOf(random) : 'none';
  const eras: Era[] = [];
  const within = async <T>(work: Promise<T>, what: string): Promise<T | Violation> => {
    let ended = false;
    const settled = work.finally(() => {
      ended = true;
    });
    settled.catch(() => {});
    return (await time.pass(time.now + endsWithinMs, () => ended)) ? settled : `stuck: ${what} does not end`;
  };
  const violations: Violation[] = [];
  const noteStuck = (result: unknown) => {
    if (typeof result === 'string') violations.push(result);
  };
  const isLong = world.hasCheckpoints && random.chance(longShare);
  if (isLong) await makeLong(world);
  noteStuck(await within(open(parts), 'opening ledgers'));
  if (isLong) damageRows(world);
  faults.plan(faultsPerSeed, faultsWithinMs);
  const restoring = restoreTimeAndAgain(world, restores, hasMore, () => {
    const era = eraOf(world);
    if (eras.length === 0) violations.push(...checkHistories(era, parts.book));
    eras.push(era);
  });
  const running = [restoring, ...Array.from({ length: clients }, () => runClient(parts))];
  noteStuck(await within(Promise.all(running), 'the clients'));
  faults.end();
  // What is broken is mended while what is late arrives; then each ledger has to take one more event.
  await time.pass(time.now + 1_000, () => false);
  heal(world);
  await time.pass(time.now + 1_500, () => false);
  for (const ledgerId of ledgerIds) {
    const result = await within(oneMore(parts, ledgerId), 'one more event');
    if (result !== 'written')
      violations.push(`stuck: ledger ${ledgerId} takes no event after everything was mended: ${result}`);
  }
  const isWhole = eras.length === 0;
  if (isWhole && world.hasCheckpoints) violations.push(...(await checkpointsFenceNobody(parts, within)));
  const final = eraOf(world);
  // What clients were told of lost events was checked before the first loss. From then on only checkpoints are checked.
  if (isWhole) violations.push(...(await check(world, parts.book, final)));
  violations.push(...parts.notes.broken, ...checkNotes(parts.notes.notes, [...eras, final]));
  if (isWhole && violations.length === 0) violations.push(...(await checkLogs(parts, within)));
  const kinds = Map.groupBy(parts.book.attempts, ({ result }) => result.kind);
  const count = (kind: 'written' | 'refused' | 'not_written' | 'unknown') => kinds.get(kind)?.length ?? 0;
  return {
    seed,
    violations,
    faults: faults.effective,
    counts: {
      ...counts,
      written: count('written'),
      refused: count('refused'),
      notWritten: count('not_written'),
      unclear: count('unknown'),
    },
    transcript: transcriptOf(parts.book),
  };
}

function worldOf(seed: number, time: SimulatedTime, bug: PlantedBug | null): World {
  const random = new SeededRandom(seed);
  const counts: Counts = {
    claims: 0,
    fenced: 0,
    unknown: 0,
    replayed: 0,
    forwarded: 0,
    notOwner: 0,
    unreachable: 0,
    moved: 0,
    notes: 0,
    notesRefused: 0,
    tiles: 0,
    restores: 0,
  };
  const world: World = {
    time,
    random,
    tables: new SimulatedTables(bug === 'older_projection_wins'),
    redis: new SimulatedRedis(time),
    nodes: new Map(),
    bug,
    bucketEvents: random.pick([20, 24, 32]),
    counts,
    logs: newLogsOfRun(),
    hasCheckpoints: !settledByCheckpoints.has(bug),
    isStopped: false,
  };
  const ids = Array.from({ length: nodesMin + (random.chance(0.2) ? 1 : 0) }, (_, at) => `node-${at}`);
  for (const id of ids) world.nodes.set(id, new SimulatedNode(id, world));
  for (const node of world.nodes.values()) for (const id of ids) if (id !== node.id) node.peers.set(id, healthyWire());
  return world;
}

async function open(parts: ClientParts): Promise<void> {
  await new Promise<void>((resolve) => void parts.world.time.after(300, resolve));
  for (const wanted of parts.wishes.opening(parts.world.time.now + 5_000)) await send(parts, wanted);
}

type Within = <T>(work: Promise<T>, what: string) => Promise<T | Violation>;

/**
 * Every node gives a checkpoint of a ledger, and the claim that stood before them still stands after them: they fenced
 * nobody. Fences that actors meet say nothing of that. The event after the checkpoints may go to a node whose own claim
 * was ended by another node long before, because placement moved the ledger or the owner was too slow for its peers.
 *
 * An owner that is too slow still has its command when another node has run it, and may claim for it. The deadlines of
 * all commands pass first, so that no actor claims between the checkpoints.
 */
async function checkpointsFenceNobody(parts: ClientParts, within: Within): Promise<Violation[]> {
  const { world, notes } = parts;
  const { random, time } = world;
  const ledgerId = random.pick(ledgerIds);
  const log: Log = { kind: 'ledger', id: ledgerId, ledgerId };
  const found: Violation[] = [];
  const goesOn = (what: string) => within(oneMore(parts, ledgerId, what), 'one more event');
  await goesOn('before checkpoints');
  await time.pass(time.now + oneMoreWithinMs + 1_000, () => false);
  const claimedBefore = await standingClaim(world, ledgerId);
  for (const node of world.nodes.values()) {
    const result = await within(notes.ask(world, node, log, true), 'a checkpoint');
    if (result !== 'given')
      found.push(`stuck: ${node.id} gives no checkpoint of ${ledgerId} after everything was mended: ${result}`);
  }
  if ((await standingClaim(world, ledgerId)) !== claimedBefore)
    found.push(`fenced: checkpoint requests fenced the owner of ${ledgerId}`);
  const result = await goesOn('behind checkpoints');
  if (result !== 'written') found.push(`stuck: ledger ${ledgerId} takes no event after checkpoints: ${result}`);
  return found;
}

/** The fences of the bucket with the newest event and of the bucket that takes the next one. */
async function standingClaim({ tables, bucketEvents }: World, ledgerId: string): Promise<string> {
  const { state, next } = await findLogEnd({ session: directSession(tables), ledgerId, bucketEvents }, null);
  return `${state.fence} ${next.fence}`;
}

/** In a run without lost rows, all that is signed agrees with all that is stored. */
async function checkLogs({ world, notes }: ClientParts, within: Within): Promise<Violation[]> {
  const { logs, counts, time, random, tables } = world;
  const found: Violation[] = [
    ...[...logs.behind].map((origin) => `behind: ${origin} was found to be behind, and no row was lost`),
    ...[...logs.remade].map((origin) => `remade: ${origin} had tiles that did not agree with what was signed`),
  ];
  const session = directSession(tables);
  const heads = new CassandraSignedHeads(session);
  for (const [origin, given] of Map.groupBy(notes.notes, (note) => note.origin)) {
    const largest = Math.max(...given.map(({ size }) => size));
    const head = await heads.get(origin);
    if ((head?.size ?? 0) < largest)
      found.push(`head: the signed head of ${origin} is ${head?.size}, and ${largest} was signed`);
  }
  const clock = { now: () => time.now, after: time.after.bind(time) };
  const parts = { store: directStore(world), session, clock, logs, counts, bug: null, damaged: () => null };
  const pairs = neighbours(notes.notes);
  const some = pairs.length === 0 ? [] : Array.from({ length: proofsPerSeed }, () => random.pick(pairs));
  const proofs = checkProofs(some, simulatedCheckpoints(parts));
  const proven = await within(proofs, 'proving checkpoints');
  return typeof proven === 'string' ? [...found, proven] : [...found, ...proven];
}

async function oneMore(parts: ClientParts, ledgerId: string, what = 'last'): Promise<string> {
  const [masterId = ''] = firstMasters(ledgerId);
  const name = `${what} of ${ledgerId}`;
  const command = append({
    ledgerId,
    masterId,
    payload: `{"n":"${name}"}`,
    commandKeys: [commandKey(name)],
    deadline: parts.world.time.now + oneMoreWithinMs,
  });
  const result = await send(parts, { name, command });
  // A master may have been closed meanwhile: that is an answer too.
  return result.kind === 'refused' ? 'written' : result.kind;
}

async function check(world: World, book: HistoryBook, final: Era): Promise<Violation[]> {
  const store = directStore(world);
  const violations: Violation[] = [...world.tables.unknown].map((cql) => `the simulation lacks: ${cql}`);
  const found = checkHistories(final, book);
  violations.push(...found);
  if (found.length === 0)
    for (const [ledgerId, log] of final) violations.push(...(await checkProjected(store, ledgerId, log)));
  const broken = book.attempts.filter(({ result }) => result.kind === 'unknown' && result.code === 'internal');
  if (broken.length > 0) violations.push(`broken: ${broken.length} calls were answered with internal`);
  return violations;
}

function checkHistories(era: Era, book: HistoryBook): Violation[] {
  return Array.from(era).flatMap(([ledgerId, log]) => checkHistory(ledgerId, log, book));
}

/** Reads the tables without faults. */
function directStore({ tables, time, random, bucketEvents }: World): CassandraLedgerStore {
  return new CassandraLedgerStore({
    session: directSession(tables),
    now: () => time.now,
    random: (bytes) => random.bytes(bytes),
    bucketEvents,
  });
}

function eraOf(world: World): Era {
  return new Map(ledgerIds.map((ledgerId) => [ledgerId, logOf(world, ledgerId)]));
}

/** Every row of a ledger in every bucket, by seq. */
function logOf(world: World, ledgerId: string): LedgerEvent[] {
  const log: LedgerEvent[] = [];
  const cql = "SELECT seq, row FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = ''";
  for (let bucket = 0; ; bucket++) {
    const rows = world.tables.select({ cql, params: [ledgerId, bucket] });
    if (rows.length === 0) return log.sort((a, b) => a.seq - b.seq);
    for (const row of rows) log.push(parseRow(String(row.row)));
  }
}

function transcriptOf(book: HistoryBook): string {
  return book.attempts
    .map(({ name, node, begun, ended, result }) => {
      const what = result.kind === 'written' ? result.outcome.event.hash : result.code;
      return `${begun}-${ended} ${node} ${name}: ${what}`;
    })
    .join('\n');
}
