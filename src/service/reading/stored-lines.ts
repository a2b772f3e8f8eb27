import type { LedgerFacts, MasterFacts } from '../../domain/event/facts.ts';
import type { Grant } from '../../domain/event/grant.ts';
import type { GrantCell, LedgerLine, MasterLine } from '../../domain/event/projection.ts';
import { checkMembers, parseMembers } from '../../store/unreadable-record.ts';

/** Parsers of the stored projections. Each throws if the text does not have its form. */

export const parseLedgerLine = (text: string) => parseMembers<LedgerLine>(text, { ledgerId: 'text', role: 'text' });

export const parseMasterLine = (text: string) => parseMembers<MasterLine>(text, { masterId: 'text' });

export const parseLedgerFacts = (text: string) => parseMembers<LedgerFacts>(text, { ledgerId: 'text', type: 'text' });

export const parseMasterFacts = (text: string) =>
  parseMembers<MasterFacts>(text, { masterId: 'text', ledgerId: 'text', createdSeq: 'count' });

/** Parses a line of a list of links, which is a grant. */
export const parseGrant = (text: string) =>
  parseMembers<Grant>(text, {
    linkId: 'text',
    delegateActorId: 'text',
    role: 'text',
    permissions: 'text',
    access: 'text',
    grantedAt: 'time',
    expiresAt: 'time or null',
  });

export function parseGrantCell(text: string): GrantCell {
  const cell = parseMembers<GrantCell>(text);
  if (cell.grant !== null) checkMembers<Grant>(cell.grant, { role: 'text', access: 'text', expiresAt: 'time or null' });
  return cell;
}

/** Parses a cell that holds one ISO time. */
export function parseTime(text: string): string {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'string' || Number.isNaN(Date.parse(value))) throw new TypeError('This is no time.');
  return value;
}
