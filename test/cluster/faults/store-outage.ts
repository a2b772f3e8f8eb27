import { type HostWatch, watchHost } from '../../support/host-watch.ts';
import { percentile } from '../campaign/percentiles.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import type { FaultContext } from './fault.ts';

/** Bound of a call that began before its node noticed: two attempts with their deadlines, and some reserve. */
const firstMaxMs = 12_000;
/** Bound of a call after its node noticed, beyond the time of as many calls that need no store. */
const quickMaxMs = 1_000;
const callsAtOnce = 100;
const appendsAtOnce = 20;
const residentBytes = 'process_resident_memory_bytes';
const heldMaxBytes = 100 * 1024 * 1024;

interface Answer {
  readonly status: number;
  readonly code: string;
  readonly tookMs: number;
}

interface OutageOutcome {
  readonly violations: readonly string[];
  readonly figures: Readonly<Record<string, number>>;
  readonly hostKept: number;
}

/**
 * Calls every node while no Cassandra answers. Reads and appends must get 503, in time at first and then at once, in
 * bounded memory, and no write may be acknowledged. Times on a busy host are no violation.
 */
export async function askWithoutStore(context: FaultContext): Promise<OutageOutcome> {
  const { cluster, load, world, random } = context;
  const host = watchHost();
  const beganMs = performance.now();
  const seen = await Promise.all(cluster.nodes.map((node) => askNode(context, node, host)));
  // Every node has noticed by now, so it does not matter to which one an append is forwarded.
  const appends = await Promise.all(
    Array.from({ length: appendsAtOnce }, () =>
      load.appendOnce(random.pick(world.ledgers), random.pick(cluster.nodes)),
    ),
  );
  const appendMedianMs = medianOf(appends);
  const transportMs = Math.max(...seen.map((node) => node.transportMs));
  const acknowledged = load.history.calls.filter(
    (call) => call.beganMs > beganMs && (call.result.kind === 'written' || call.result.kind === 'done'),
  );
  return {
    violations: [
      ...seen.flatMap(({ violations }) => violations),
      ...acknowledged.map(({ name, node }) => `without a store ${node} acknowledged ${name}`),
      ...(appendMedianMs > host.bound(quickMaxMs + transportMs)
        ? [`without a store half of ${appendsAtOnce} appends were answered after ${Math.round(appendMedianMs)} ms`]
        : []),
    ],
    figures: {
      first_unavailable_ms: Math.round(Math.max(...seen.map(({ firstMs }) => firstMs))),
      unavailable_median_ms: Math.round(Math.max(...seen.map(({ medianMs }) => medianMs))),
      append_unavailable_median_ms: Math.round(appendMedianMs),
      without_need_median_ms: Math.round(transportMs),
    },
    hostKept: host.keptShare(),
  };
}

async function askNode(context: FaultContext, node: NodeUnderTest, host: HostWatch) {
  const violations: string[] = [];
  const ask = async () => {
    const answer = await read(context, node);
    if (answer.status !== 503 || answer.code !== 'unavailable')
      violations.push(`without a store ${node.id} answered ${answer.status} ${answer.code}, and not 503 unavailable`);
    return answer;
  };
  const first = await ask();
  if (first.tookMs > host.bound(firstMaxMs))
    violations.push(`${node.id} answered after ${Math.round(first.tookMs)} ms`);
  const beganMs = performance.now();
  while ((await ask()).tookMs > quickMaxMs)
    if (performance.now() - beganMs > firstMaxMs) {
      if (host.isFair()) violations.push(`without a store ${node.id} does not come to answer within ${quickMaxMs} ms`);
      break;
    }
  const heldBefore = await node.counted(residentBytes);
  const answers = await Promise.all(Array.from({ length: callsAtOnce }, ask));
  const heldBytes = (await node.counted(residentBytes)) - heldBefore;
  const medianMs = medianOf(answers);
  const transportMs = medianOf(await Promise.all(Array.from({ length: callsAtOnce }, () => readTerms(node))));
  if (medianMs > host.bound(quickMaxMs + transportMs))
    violations.push(
      `${node.id} answered half of ${callsAtOnce} calls after ${Math.round(medianMs)} ms, and of those that need no store after ${Math.round(transportMs)} ms`,
    );
  if (heldBytes > heldMaxBytes) violations.push(`${node.id} took ${heldBytes} bytes for ${callsAtOnce} calls`);
  return { violations, firstMs: first.tookMs, medianMs, transportMs };
}

function medianOf(answers: readonly { readonly tookMs: number }[]): number {
  return percentile(
    answers.map(({ tookMs }) => tookMs),
    50,
  );
}

/** Reads a ledger, which needs the store. */
async function read({ world, random }: FaultContext, node: NodeUnderTest): Promise<Answer> {
  const beganMs = performance.now();
  const response = await fetch(`${node.baseUrl}/v1/ledgers/${random.pick(world.ledgers).id}/events`, {
    headers: { authorization: `Bearer ${world.buyer.apiKey}` },
    signal: AbortSignal.timeout(2 * firstMaxMs),
  });
  const { error } = (await response.json()) as { readonly error?: { readonly code?: string } };
  return { status: response.status, code: error?.code ?? '', tookMs: performance.now() - beganMs };
}

/** A call that needs no store. */
async function readTerms(node: NodeUnderTest): Promise<{ readonly tookMs: number }> {
  const beganMs = performance.now();
  const response = await fetch(`${node.baseUrl}/v1/legal/terms`, { signal: AbortSignal.timeout(2 * firstMaxMs) });
  await response.text();
  return { tookMs: performance.now() - beganMs };
}
