/**
 * What commands end with, beside 0. `verify` and `cluster verify` say their verdict by 0, 1 and 2, so what kept them from one has
 * codes of its own, those of sysexits.h.
 */
export const exitCodes = {
  /** What was asked for failed; of a verdict: something is wrong. */
  failed: 1,
  /** Of verdicts alone: nothing wrong was found, and not everything could be checked. */
  incomplete: 2,
  /** The command line is wrong. */
  usage: 64,
  /** A file (or ledger) that was named is not there, or does not hold what it should. */
  input: 66,
  /** Of verdicts alone: it broke off before there was one, as where the resolver or Cassandra does not answer. */
  unavailable: 69,
  /** Of a node: a write to its disk failed, and it has stopped for that. */
  diskFailed: 74,
} as const;
