/**
 * The file of an export: JSON lines, so that ledgers of any length are written and read a line at a time.
 *
 *   {"format":"ledger-trust-export/1","ledger_id":…,"exported_at":…}
 *   {"event":{…}}          as REST has it, in order, one line each
 *   {"actor":{…}}          resolver document of everyone who wrote an event
 *   {"authority":{…}}      trust anchor
 *   {"end":{"count":…}}    without it the file was cut short
 */
export const exportFormat = 'ledger-trust-export/1';

/** Whether a text is, or begins with, the first line of an export. */
export function isExportHeader(line: string): boolean {
  return line.startsWith('{') && line.includes(`"format":"${exportFormat}"`);
}
