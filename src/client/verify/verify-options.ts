import type { Checkpoint } from '../../domain/log/checkpoint.ts';
import type { AuthorityKeys, KeySource } from './key-source.ts';

export interface VerifyOptions {
  /** The public keys of the actors. */
  readonly keys: KeySource;
  /** The keys of the trust anchor. If null or left out, seals are not checked. */
  readonly authorityKeys?: AuthorityKeys | null;
  /**
   * Which of these keys come from another source than the events. Other keys prove nothing, so a signature under one of
   * them leaves the verdict `incomplete`. If left out: the actors' keys if they are from keysFromResolver, else none.
   */
  readonly trustedKeys?: TrustedKeys;
  /**
   * What the events are, always in ascending order. `ledger`: events of one ledger. `master`: events of one master.
   * `segment`: the events of one ledger that a filter or a partial access has left.
   */
  readonly kind: 'ledger' | 'master' | 'segment';
  /**
   * How much of the ledger or master the events are. `all`: everything from its start on. `run`: without gaps, but it
   * may begin in the middle. `some`: with gaps, which are no fault but leave the verdict `incomplete`. If left out:
   * `some` for a segment, else `run`.
   */
  readonly extent?: 'all' | 'run' | 'some';
  /** The ledger that the events must be of, as their source says. If left out, the ledger of the first event. */
  readonly ledgerId?: string;
  /** The master that the events must be of. If left out: for kind `master` that of the first event, else any. */
  readonly masterId?: string;
  /**
   * A verified checkpoint of the ledger or master (verifyCheckpoint), or several, all of which count. Its root must be
   * that of the first events. If the events are a whole ledger or master, there must be as many as the checkpoint
   * covers. Without one, events behind the last seal leave the verdict `incomplete`.
   */
  readonly checkpoint?: Checkpoint | readonly Checkpoint[];
  /** Hashes that the list must contain. Without one, a list that was cut short at its end looks whole. */
  readonly mustContain?: readonly string[];
  /** ISO time after which no event can be dated. If left out: one hour after the event is verified. */
  readonly latest?: string;
}

/** Whose keys are trusted. */
export type TrustedKeys = 'all' | 'actors' | 'authority' | 'none';
