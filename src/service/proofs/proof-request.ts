import { invalidField } from '../../domain/errors.ts';
import { checkCount, checkUuid } from '../../domain/values/fields.ts';
import { checkIfGiven } from '../calls/given-fields.ts';

/** Which event a proof of inclusion is about: the one at an index of the log, or the one of an id. */
export type NamedEvent = { readonly index: number } | { readonly eventId: string };

interface Sizes {
  readonly from: number;
  /** null: the newest certain size. */
  readonly to: number | null;
}

/** null: it was left out. */
export function checkSize(field: string, size: bigint | undefined): number | null {
  return checkIfGiven(checkAtLeastOne, field, size) ?? null;
}

/** Throws `invalid_argument` unless exactly one of the two is given. `indexField`: `seq` or `master_seq`. */
export function checkNamedEvent(
  indexField: string,
  { index, eventId }: { readonly index: bigint | undefined; readonly eventId: string | undefined },
): NamedEvent {
  if (index !== undefined && eventId !== undefined)
    throw invalidField('event_id', `left out beside ${indexField}: exactly one event`);
  if (index !== undefined) return { index: checkCount(indexField, index, 0) };
  if (eventId !== undefined) return { eventId: checkUuid('event_id', eventId) };
  throw invalidField(indexField, 'given, or event_id: exactly one event');
}

export function checkSizes({ from, to }: { readonly from?: bigint; readonly to?: bigint }): Sizes {
  const sizes = { from: checkAtLeastOne('from', from), to: checkSize('to', to) };
  if (sizes.to !== null && sizes.from > sizes.to) throw invalidField('from', 'at most to');
  return sizes;
}

function checkAtLeastOne(field: string, value: unknown): number {
  return checkCount(field, value, 1);
}
