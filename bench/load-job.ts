import type { Transport } from './options.ts';
import type { RequestFile } from './request-file.ts';

/** What the load generator is to send. Plain data: it comes to that process as JSON. */
export interface LoadJob {
  readonly transport: Transport;
  readonly port: number;
  readonly file: RequestFile;
  readonly apiKeys: readonly string[];
  /** Records of each signer, from inclusive, to exclusive. */
  readonly from: number;
  readonly to: number;
  /** Events of each signer that wait for their answers at a time. */
  readonly inFlight: number;
}

/** Answers that a job brings, and requests that it has open at a time. */
export interface Expected {
  readonly answers: number;
  readonly openMax: number;
}

export function expectedOf({ apiKeys, from, to, inFlight }: LoadJob): Expected {
  return { answers: apiKeys.length * (to - from), openMax: apiKeys.length * inFlight };
}

export interface LoadResult {
  readonly accepted: number;
  /** Refused for their signature. */
  readonly refused: number;
  /** Anything else: the run is worth nothing then. */
  readonly failed: number;
  readonly firstFailure: string | null;
  readonly seconds: number;
  /** The time in which all signers send; the whole time if that is less than half of it. */
  readonly steady: SteadyLoad;
  /** Latencies (LatencyHistogram.counts). */
  readonly latencyCounts: readonly number[];
  /** CPU time of the load generator for it, in µs. */
  readonly cpuUs: number;
}

export interface SteadyLoad {
  readonly accepted: number;
  readonly seconds: number;
}

/** An answer as the load generator sees it. */
export type AnswerKind = 'accepted' | 'refused' | 'failed';
