import { sumOf } from './sum.ts';

/** What some nodes have committed since they began, all together. */
export interface CommitTotals {
  readonly commits: number;
  readonly events: number;
  readonly seconds: number;
  /** Commits by the bucket of the histogram that they fall in, by its upper bound. */
  readonly bySize: ReadonlyMap<number, number>;
  /** Commands that went to another node and were answered there. */
  readonly forwarded: number;
}

export interface GroupSize {
  readonly events: number;
  readonly commits: number;
}

/** Reads the metrics of the nodes at their internal ports. */
export async function commitTotals(internalBases: readonly string[]): Promise<CommitTotals> {
  const texts = await metricsOf(internalBases);
  const sum = (name: string): number => sumOf(texts, (text) => seriesValue(text, name));
  const cumulative = new Map<number, number>();
  for (const text of texts) {
    for (const [, bound = '', count = ''] of text.matchAll(/^svc_commit_batch_events_bucket\{le="(\d+)"\} (\d+)$/gm)) {
      cumulative.set(Number(bound), (cumulative.get(Number(bound)) ?? 0) + Number(count));
    }
  }
  const bySize = new Map<number, number>();
  let below = 0;
  for (const [bound, count] of [...cumulative].sort(([left], [right]) => left - right)) {
    bySize.set(bound, count - below);
    below = count;
  }
  return {
    commits: sum('svc_commit_batch_events_count'),
    events: sum('svc_commit_batch_events_sum'),
    seconds: sum('svc_commit_seconds_sum'),
    bySize,
    forwarded: sum('svc_forwarded_calls_total{result="answered"}'),
  };
}

export function totalsBetween(before: CommitTotals, after: CommitTotals): CommitTotals {
  return {
    commits: after.commits - before.commits,
    events: after.events - before.events,
    seconds: after.seconds - before.seconds,
    bySize: new Map([...after.bySize].map(([bound, count]) => [bound, count - (before.bySize.get(bound) ?? 0)])),
    forwarded: after.forwarded - before.forwarded,
  };
}

/** Of several parts of a run together. */
export function sumOfTotals(parts: readonly CommitTotals[]): CommitTotals {
  const bounds = new Set(parts.flatMap(({ bySize }) => [...bySize.keys()]));
  return {
    commits: sumOf(parts, ({ commits }) => commits),
    events: sumOf(parts, ({ events }) => events),
    seconds: sumOf(parts, ({ seconds }) => seconds),
    bySize: new Map([...bounds].map((bound) => [bound, sumOf(parts, ({ bySize }) => bySize.get(bound) ?? 0)])),
    forwarded: sumOf(parts, ({ forwarded }) => forwarded),
  };
}

/**
 * The sizes that the commits had. The histogram says how many lie between two of its bounds; within them they are taken
 * to lie at one same part of the way, the one at which all their events together are as many as were counted.
 */
export function groupSizes({ bySize, events }: CommitTotals): GroupSize[] {
  const ranges = [...bySize]
    .sort(([left], [right]) => left - right)
    .map(([to, commits], at, all) => ({ from: (all[at - 1]?.[0] ?? 0) + 1, to, commits }))
    .filter(({ commits }) => commits > 0);
  const least = sumOf(ranges, ({ from, commits }) => from * commits);
  const most = sumOf(ranges, ({ to, commits }) => to * commits);
  const part = most === least ? 0 : Math.min(1, Math.max(0, (events - least) / (most - least)));
  return ranges.flatMap(({ from, to, commits }) => {
    const size = from + part * (to - from);
    const lower = Math.floor(size);
    const atUpper = Math.round((size - lower) * commits);
    return [
      { events: lower, commits: commits - atUpper },
      { events: lower + 1, commits: atUpper },
    ].filter((group) => group.commits > 0);
  });
}

const troubleSeries =
  /^(svc_(?:claims|fenced_appends|unknown_outcomes|forwarded_calls|not_owner|shard_moves)_total(?:\{[^}]*\})?) (\S+)$/gm;

/** Counts of all nodes that explain a bad run: claims, races for claims, and calls that missed the owner. */
export async function troubleOf(internalBases: readonly string[]): Promise<Readonly<Record<string, number>>> {
  const found: Record<string, number> = {};
  for (const text of await metricsOf(internalBases)) {
    for (const [, name = '', value = '0'] of text.matchAll(troubleSeries)) {
      found[name] = (found[name] ?? 0) + Number(value);
    }
  }
  return found;
}

function metricsOf(internalBases: readonly string[]): Promise<string[]> {
  return Promise.all(internalBases.map(async (base) => (await fetch(`${base}/metrics`)).text()));
}

function seriesValue(text: string, name: string): number {
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return line === undefined ? 0 : Number(line.slice(name.length + 1));
}
