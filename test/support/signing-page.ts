import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** docs/signing.md as its tests read it. */
export const signingPage = readFileSync(join(import.meta.dirname, '../../docs/signing.md'), 'utf8');

/** The text of a section, from its heading to the next one of its level. */
export function sectionOf(page: string, heading: string): string {
  const found = page.split('\n## ').find((text) => text.startsWith(`${heading}\n`));
  if (found === undefined) throw new Error(`no section ${heading}`);
  return found;
}

/** The cells of every table in a text, without the heads. */
export function tableRows(text: string): string[][] {
  const rows = [...text.matchAll(/^\|(.*)\|$/gm)].map(([, cells = '']) => cells.split('|').map((cell) => cell.trim()));
  return rows.filter((_, at) => !isRule(rows[at]) && !isRule(rows[at + 1]));
}

const isRule = (row: readonly string[] | undefined) => row?.every((cell) => /^-+$/.test(cell)) === true;

/** The texts in back quotes. */
export function quoted(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, one = '']) => one);
}

/** One row of the table of signed calls. */
export interface SignedCallRow {
  readonly call: string;
  /** `Service.Method` */
  readonly method: string;
  readonly required: boolean;
  readonly byEntity: boolean;
  /** null: the request names it. */
  readonly eventType: string | null;
  readonly ledgerId: string;
  /** null: those of the payload, and what the service adds to it. */
  readonly keys: readonly string[] | null;
  /** The ledger types that the row is about; all if empty. */
  readonly ledgerTypes: readonly string[];
}

const ledgerTypes = ['ORDER', 'FACILITY_ROOT', 'ENGAGEMENT', 'ENTITY_ROOT'];

export const signedCallRows: readonly SignedCallRow[] = tableRows(sectionOf(signingPage, 'Signed calls')).map(
  ([call = '', method = '', required = '', byEntity = '', eventType = '', ledgerId = '', keys = '']) => ({
    call,
    method: method.replaceAll('`', ''),
    required: oneOf(required, 'required', 'optional'),
    byEntity: oneOf(byEntity, 'yes', 'no'),
    eventType: /^`([A-Z_]+)`$/.exec(eventType)?.[1] ?? null,
    ledgerId,
    keys: keys.startsWith('the payload') ? null : quoted(keys),
    ledgerTypes: ledgerTypes.filter((type) => call.includes(type)),
  }),
);

function oneOf(text: string, yes: string, no: string): boolean {
  if (text !== yes && text !== no) throw new Error(`${text} is neither ${yes} nor ${no}`);
  return text === yes;
}

/** The row of a method, for a ledger type where the rows of the method differ by it. */
export function signedCallRow(method: string, ledgerType: string): SignedCallRow | undefined {
  return signedCallRows.find(
    (row) => row.method === method && (row.ledgerTypes.length === 0 || row.ledgerTypes.includes(ledgerType)),
  );
}
