/**
 * The file of an export: JSON lines, so that ledgers of any length are written and read a line at a time.
 *
 *   {"format":"ledger-trust-export/1","ledger_id":…,"exported_at":…}
 *   {"event":{…}}          as REST has it, in order, one line each
 *   {"actor":{…}}          resolver document of everyone who wrote an event
 *   {"authority":{…}}      trust anchor
 *   {"end":{"count":…,"kind":…}}    without it the file was cut short
 *
 * The end says what the events are, as far as whoever exported them could know: a whole `ledger`, from its start to where it ended then; a
 * whole `master`; or a `segment`, where events are missing between those that were handed out. Exports of before say nothing of it.
 */
export const exportFormat = 'ledger-trust-export/1';

/** Whether a text is, or begins with, the first line of an export. */
export function isExportHeader(line: string): boolean {
  return line.startsWith('{') && line.includes(`"format":"${exportFormat}"`);
}

export const exportKinds = ['ledger', 'master', 'segment'] as const;
export type ExportKind = (typeof exportKinds)[number];

/** What the last line says. */
export interface ExportEnd {
  readonly count: number;
  readonly kind: ExportKind | null;
}

/** Reads the end of an export; null where it is none. */
export function readExportEnd(value: unknown): ExportEnd | null {
  if (typeof value !== 'object' || value === null || !('count' in value) || typeof value.count !== 'number')
    return null;
  if (!('kind' in value)) return { count: value.count, kind: null };
  const kind = exportKinds.find((known) => known === value.kind);
  return kind === undefined ? null : { count: value.count, kind };
}
