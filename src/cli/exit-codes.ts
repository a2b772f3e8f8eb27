/**
 * What commands end with, beside 0. `verify` says its verdict by 0, 1 and 2, so what kept it from one has codes of its own, those of
 * sysexits.h.
 */
export const exitCodes = {
  /** What was asked for failed; of `verify`: the events are invalid. */
  failed: 1,
  /** Of `verify` alone: nothing wrong was found, and not everything could be checked. */
  incomplete: 2,
  /** The command line is wrong. */
  usage: 64,
  /** A file that was named is not there, or does not hold what it should. */
  input: 66,
  /** Of `verify` alone: it broke off before a verdict, as where the resolver does not answer. */
  unavailable: 69,
} as const;
