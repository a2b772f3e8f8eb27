import type { LedgerFacts, MasterFacts } from '../../domain/event/facts.ts';
import type { Grant } from '../../domain/event/grant.ts';
import type { GrantCell, LedgerLine, MasterLine } from '../../domain/event/projection.ts';
import { count, memberCheck, orNull, parserOf, text, time } from '../records/record-form.ts';

/** Parsers of the stored projections. Each throws if the text does not have its form. */

export const parseLedgerLine = parserOf<LedgerLine>({ ledgerId: text, role: text });

export const parseMasterLine = parserOf<MasterLine>({ masterId: text });

export const parseLedgerFacts = parserOf<LedgerFacts>({ ledgerId: text, type: text });

export const parseMasterFacts = parserOf<MasterFacts>({ masterId: text, ledgerId: text, createdSeq: count });

/** Parses a line of a list of links, which is a grant. */
export const parseGrant = parserOf<Grant>({
  linkId: text,
  delegateActorId: text,
  role: text,
  permissions: text,
  access: text,
  grantedAt: time,
  expiresAt: orNull(time),
});

const parseAnyGrantCell = parserOf<GrantCell>({});
/** Of the grant in a cell: the members that the access rests on. */
const checkGrant = memberCheck<Grant>({ role: text, access: text, expiresAt: orNull(time) });

export function parseGrantCell(json: string): GrantCell {
  const cell = parseAnyGrantCell(json);
  if (cell.grant !== null) checkGrant(cell.grant);
  return cell;
}

/** Parses a cell that holds one ISO time. */
export function parseTime(json: string): string {
  const value: unknown = JSON.parse(json);
  if (!time(value)) throw new TypeError('This is no time.');
  return value as string;
}
