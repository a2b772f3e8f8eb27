import { LedgerError } from '../../domain/errors.ts';
import { nearestName } from '../call/nearest-name.ts';
import type { Parameter } from './query.ts';

/** A caller's name goes into answers and the log, so it is cut to this length. */
const shownMaxChars = 128;
/** Of the value of X-Ignored-Parameters. Names that do not fit are told as `...`. */
const headerMaxChars = 2_048;

/** The names that `known` does not have, each once, as they are shown to the caller. */
export function unknownParameters(known: ReadonlyMap<string, unknown>, parameters: readonly Parameter[]): string[] {
  const unknown = parameters.filter(({ name }) => !known.has(name));
  return [...new Set(unknown.map(({ name }) => name.slice(0, shownMaxChars).toWellFormed()))];
}

/** The value of X-Ignored-Parameters: names, percent-encoded as in a query, separated by commas. */
export function ignoredParametersValue(names: readonly string[]): string {
  let value = '';
  for (const name of names) {
    const longer = `${value}${value === '' ? '' : ', '}${encodeURIComponent(name)}`;
    if (longer.length > headerMaxChars) return `${value}, ...`;
    value = longer;
  }
  return value;
}

/**
 * Whether a caller asks that unknown parameters are refused. Throws `invalid_argument` for a value without a meaning.
 */
export function isStrict(header: string | undefined): boolean {
  if (header === undefined || header === '0' || header === '1') return header === '1';
  const details = { header: 'X-Strict', expected: '1 or 0' };
  throw new LedgerError('invalid_argument', 'Header X-Strict must be 1 or 0.', details);
}

export function unknownParameter(field: string, known: readonly string[]): LedgerError {
  const nearest = nearestName(field, known);
  const shown = JSON.stringify(field);
  if (nearest === null) {
    const message = `There is no parameter ${shown} here: this call takes none in its query.`;
    return new LedgerError('invalid_argument', message, { field, expected: 'no parameters' });
  }
  return new LedgerError(
    'invalid_argument',
    `There is no parameter ${shown} here; the nearest one is ${JSON.stringify(nearest)}.`,
    { field, expected: `one of ${known.join(', ')}`, nearest },
  );
}
