import type { StoredCell, StoredLine } from '../store/store-inspection.ts';
import type { FingerprintSet } from './fingerprint-set.ts';

/** What follows from a set of ledgers, to find what is stored beside it and follows from nothing. */
export interface Expectations {
  readonly cells: FingerprintSet;
  readonly lines: FingerprintSet;
}

export const cellText = ({ key, version, value }: StoredCell): string => JSON.stringify([key, version, value]);
export const lineText = ({ list, order, value }: StoredLine): string => JSON.stringify([list, order, value]);
