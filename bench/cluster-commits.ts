import { sumOf } from './sum.ts';

/** What some nodes have committed since they began, all together. */
export interface CommitTotals {
  readonly commits: number;
  readonly events: number;
  readonly seconds: number;
  /** Commands that went to another node and were answered there. */
  readonly forwarded: number;
}

/** Reads the metrics of the nodes at their internal ports. */
export async function commitTotals(internalBases: readonly string[]): Promise<CommitTotals> {
  const texts = await metricsOf(internalBases);
  const sum = (name: string): number => sumOf(texts, (text) => seriesValue(text, name));
  return {
    commits: sum('svc_commit_batch_events_count'),
    events: sum('svc_commit_batch_events_sum'),
    seconds: sum('svc_commit_seconds_sum'),
    forwarded: sum('svc_forwarded_calls_total{result="answered"}'),
  };
}

export function totalsBetween(before: CommitTotals, after: CommitTotals): CommitTotals {
  return {
    commits: after.commits - before.commits,
    events: after.events - before.events,
    seconds: after.seconds - before.seconds,
    forwarded: after.forwarded - before.forwarded,
  };
}

/** Of several parts of a run together. */
export function sumOfTotals(parts: readonly CommitTotals[]): CommitTotals {
  return {
    commits: sumOf(parts, ({ commits }) => commits),
    events: sumOf(parts, ({ events }) => events),
    seconds: sumOf(parts, ({ seconds }) => seconds),
    forwarded: sumOf(parts, ({ forwarded }) => forwarded),
  };
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
