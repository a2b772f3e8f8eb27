import { randomUUID } from 'node:crypto';
import { afterMs } from '../../../cluster/local/ports.ts';
import type { SeededRandom } from '../../simulation/random.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import { type AppendCall, type LoadCalls, written } from './calls.ts';
import { answeredBy, isCertain, type LoadHistory, noted } from './load-history.ts';
import { closedKept, type LoadLedger } from './load-world.ts';
import type { LoadParty } from './parties.ts';

const eventsMax = 400;
const inFlightMax = 16;
/** After so many failed connections in a row a stream ends, and another node is tried. */
const attemptsMax = 2;

interface LaneParts {
  readonly calls: LoadCalls;
  readonly history: LoadHistory;
  readonly random: SeededRandom;
  readonly ledger: LoadLedger;
  readonly party: LoadParty;
  readonly nodes: readonly NodeUnderTest[];
  readonly restMaxMs: number;
  /** Whether new events may be made. */
  isRunning(): boolean;
  /** Called for each event. `ended` resolves when the event is settled or given up. */
  begun(ended: Promise<void>): void;
}

/** An event without a certain answer. */
interface Open {
  readonly call: AppendCall;
  readonly begunMs: number;
  settled: boolean;
  /** Call it when the event is settled or given up. */
  end(): void;
}

/**
 * Sends events of one ledger in order over one stream after another. After a failed stream it sends the uncertain
 * events again, in order and under the same keys, over a stream to any node. Ends when all events are settled, or when
 * one stays uncertain for too long.
 */
export async function runLane(parts: LaneParts): Promise<void> {
  const { calls, history, random, ledger, party, nodes, restMaxMs, isRunning } = parts;
  const lane = randomUUID();
  let open: Open[] = [];
  let made = 0;
  const next = (): Open => {
    const masters = random.chance(0.05) ? ledger.masters : ledger.masters.slice(closedKept);
    const place = { id: lane, index: made, previous: made === 0 ? null : made - 1 };
    made += 1;
    const call = calls.append(ledger, random.pick(masters), party, place);
    const ended = Promise.withResolvers<void>();
    parts.begun(ended.promise);
    return { call, begunMs: performance.now(), settled: false, end: ended.resolve };
  };
  const hasMore = () => isRunning() && made < eventsMax;
  while (hasMore() || open.length > 0) {
    const node = random.pick(nodes);
    await using stream = party.at(node).appendStream({ maxInFlight: inFlightMax, attemptsMax });
    const outcomes: Promise<void>[] = [];
    let isOver = false;
    const send = (event: Open) => {
      const appended = stream.append(event.call.event);
      // Set at once: no event may follow a failed one in the same stream.
      appended.catch((error) => {
        if (!isCertain(answeredBy(error))) isOver = true;
      });
      const outcome = noted(history, event.call, node, async () => written(await appended));
      outcomes.push(
        outcome.then((result) => {
          event.settled = isCertain(result);
          if (event.settled) event.end();
          const atMs = performance.now();
          if (result.kind === 'written') history.acknowledgements.push({ atMs, tookMs: atMs - event.begunMs });
        }),
      );
    };
    for (const event of open) send(event);
    while (hasMore() && !isOver) {
      await stream.ready();
      if (isOver) break;
      const event = next();
      open.push(event);
      send(event);
      await afterMs(random.between(0, restMaxMs));
    }
    await Promise.all(outcomes);
    open = open.filter(({ settled }) => !settled);
    const late = open.filter(({ begunMs }) => history.isInVain(begunMs));
    if (late.length > 0) {
      // The later events are given up too: otherwise they could be written without this one.
      for (const { call, begunMs } of late) history.noteFailed(call.name, begunMs);
      for (const { end } of open) end();
      return;
    }
    if (open.length > 0) await afterMs(random.between(20, 250));
  }
}
