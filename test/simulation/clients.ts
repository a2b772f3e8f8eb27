import type { CommandOutcome } from '../../src/actors/inbox/outcome.ts';
import { names } from '../../src/domain/event/projection.ts';
import type { Lane } from '../../src/domain/ledger/command.ts';
import type { Log } from '../../src/service/proofs/proven-logs.ts';
import { supplier } from '../support/commands.ts';
import { type AttemptResult, type HistoryBook, resultOf } from '../support/history/history.ts';
import { ledgerIds, type Wanted, type Wishes } from './commands.ts';
import type { SimulatedNode, World } from './node.ts';
import type { NoteBook } from './notes.ts';

const attemptsMax = 6;
const looksLimit = 1_000;
/** A client waits so long for a look or a checkpoint, ms. */
const patienceMs = 1_500;

export interface ClientParts {
  readonly world: World;
  readonly wishes: Wishes;
  readonly book: HistoryBook;
  readonly notes: NoteBook;
  /** Whether new commands are wanted still. */
  hasMore(): boolean;
}

/** Sends commands one after the other, those with a key again until it is certain what became of them. */
export async function runClient(parts: ClientParts): Promise<void> {
  const { world, wishes } = parts;
  const checkpoint = world.hasCheckpoints ? 14 : 0;
  while (parts.hasMore()) {
    await pause(world, world.random.between(0, 60));
    if (world.isStopped) continue;
    const kind = world.random.weighted({ command: 82, look: 8, lane: 6, access: 4, checkpoint });
    if (kind === 'look') await look(parts);
    else if (kind === 'checkpoint') await askCheckpoint(parts);
    else if (kind === 'lane') await sendLane(parts);
    else if (kind === 'access') await changeAccess(parts);
    else await send(parts, wishes.next(deadlineOf(world)));
  }
}

/** Sends a command until its outcome is certain, if it has a key; else once. */
export async function send(parts: ClientParts, wanted: Wanted): Promise<AttemptResult> {
  const { world } = parts;
  let result = await attempt(parts, wanted, anyNode(world));
  for (let sent = 1; sent < attemptsMax && wanted.command.commandKeys.length > 0; sent++) {
    if (result.kind === 'written' || result.kind === 'refused') break;
    await pause(world, world.random.between(20, 60) * 2 ** sent);
    const command = { ...wanted.command, deadline: deadlineOf(world) };
    result = await attempt(parts, { name: wanted.name, command }, anyNode(world));
  }
  return result;
}

/** A stream's events of one ledger: sent without waiting for one another, each behind the one before. */
async function sendLane(parts: ClientParts): Promise<void> {
  const { world, wishes } = parts;
  const node = anyNode(world);
  const ledgerId = world.random.pick(ledgerIds);
  const masterId = wishes.masterOf(ledgerId);
  const laneId = `lane ${wishes.made}`;
  const sending: Promise<AttemptResult>[] = [];
  const count = world.random.between(2, 5);
  for (let index = 0; index < count; index++) {
    const lane: Lane = { id: laneId, index, previous: index === 0 ? null : index - 1 };
    sending.push(attempt(parts, wishes.append(ledgerId, masterId, supplier, deadlineOf(world), lane), node));
  }
  await Promise.all(sending);
}

/**
 * Gives a delegate access and takes it back, time and again: each time what is projected takes the place of what stood
 * there.
 */
async function changeAccess(parts: ClientParts): Promise<void> {
  const { world, wishes } = parts;
  const access = wishes.access();
  const count = world.random.between(2, 5);
  for (let change = 0; change < count; change++) {
    const deadline = deadlineOf(world);
    await send(parts, change % 2 === 0 ? wishes.grant(access, deadline) : wishes.revoke(access, deadline));
  }
}

async function attempt({ world, book }: ClientParts, wanted: Wanted, node: SimulatedNode): Promise<AttemptResult> {
  const { life } = node;
  const begun = book.tick();
  const answer = new Promise<AttemptResult>((resolve) => {
    // A call that was not yet taken over when the process ended, and one that was, look alike from here.
    life.onEnd(() =>
      world.time.after(world.random.between(0, 5), () => resolve({ kind: 'unknown', code: 'disconnected' })),
    );
    const answered = (result: AttemptResult) => life.deliver(() => resolve(result));
    life.deliver(() =>
      node.directory.submit(wanted.command).then(
        (outcome: CommandOutcome) => answered({ kind: 'written', outcome }),
        (error: unknown) => answered(resultOf(error)),
      ),
    );
  });
  const result = await answer;
  book.attempts.push({ ...wanted, node: node.id, begun, ended: book.tick(), result });
  return result;
}

/** Of a ledger or master, as often at the newest size as at an older one. */
async function askCheckpoint({ world, wishes, notes }: ClientParts): Promise<void> {
  const { random } = world;
  const ledgerId = random.pick(ledgerIds);
  const log: Log = random.chance(0.5)
    ? { kind: 'ledger', id: ledgerId, ledgerId }
    : { kind: 'master', id: wishes.masterOf(ledgerId), ledgerId };
  await Promise.race([notes.ask(world, anyNode(world), log, random.chance(0.6)), pause(world, patienceMs)]);
}

async function look({ world, wishes, book }: ClientParts): Promise<void> {
  const { store } = anyNode(world);
  const ledgerId = world.random.pick(ledgerIds);
  const scope = world.random.chance(0.3) ? names.ownEvents(ledgerId) : names.masterEvents(wishes.masterOf(ledgerId));
  const begun = book.tick();
  const asked = Promise.all([store.head(ledgerId), store.readScope(ledgerId, scope, { limit: looksLimit })]);
  const gaveUp = pause(world, patienceMs).then(() => null);
  // A read that fails says nothing.
  const seen = await Promise.race([asked.catch(() => null), gaveUp]);
  if (seen === null) return;
  const [head, { entries }] = seen;
  const seqs = entries.map(({ seq }) => seq);
  book.looks.push({ ledgerId, scope, begun, ended: book.tick(), headSeq: head?.seq ?? -1, seqs });
}

/** A node that is up; if none is, one that is not. */
function anyNode(world: World): SimulatedNode {
  const all = [...world.nodes.values()];
  const up = all.filter(({ life }) => !life.isOver);
  return world.random.pick(up.length > 0 ? up : all);
}

function deadlineOf(world: World): number {
  return world.time.now + world.random.pick([400, 1_500, 3_000, 3_000]);
}

function pause(world: World, ms: number): Promise<void> {
  return new Promise((resolve) => void world.time.after(ms, resolve));
}
