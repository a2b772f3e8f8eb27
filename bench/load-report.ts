/** What a run with one server and one with a cluster both tell of what was sent. */
export interface LoadReport {
  readonly ledgers: number;
  readonly events: number;
  readonly accepted: number;
  readonly refused: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Cores that nothing of the run used: above a tenth or so, something else ran on the machine. */
  readonly coresOfOthers: number;
  readonly eventsPerCommit: number;
  readonly commitMs: number;
}

/** Records of each signer: `from` inclusive, `to` exclusive. */
export interface Records {
  readonly from: number;
  readonly to: number;
}

/** So many parts of these records, of one length but for what does not come out even. */
export function partsOf({ from, to }: Records, count: number): Records[] {
  const startOf = (part: number): number => from + Math.floor(((to - from) * part) / count);
  return Array.from({ length: count }, (_, part) => ({ from: startOf(part), to: startOf(part + 1) }));
}
