import type { StoredCell, StoredLine } from '../../store/store-inspection.ts';
import type { FingerprintSet } from './fingerprint-set.ts';

/**
 * The cells and lines that follow from the events of a set of ledgers. Any other stored cell or line follows from no
 * event.
 */
export interface Expectations {
  readonly cells: FingerprintSet;
  readonly lines: FingerprintSet;
}

export const cellText = ({ key, version, value }: StoredCell): string => JSON.stringify([key, version, value]);
export const lineText = ({ list, order, value }: StoredLine): string => JSON.stringify([list, order, value]);
