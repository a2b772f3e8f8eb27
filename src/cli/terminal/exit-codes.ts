/** Exit codes beside 0. `verify` and `cluster verify` report their result as 0, 1 or 2. Others are of sysexits.h. */
export const exitCodes = {
  /** The command failed. As a result of verifying: something is wrong. */
  failed: 1,
  /** Only of verifying: nothing wrong was found, but not everything could be checked. */
  incomplete: 2,
  /** The command line is wrong. */
  usage: 64,
  /** A named file (or ledger) does not exist, or does not hold what it should. */
  input: 66,
  /** Only of verifying: the check broke off, for example because the resolver does not answer. */
  unavailable: 69,
  /** A write failed: of a node to its disk, which it stopped for; of a command to its output. */
  writeFailed: 74,
} as const;
