import { invalidAnswer } from '../client/error.ts';
import { LedgerError } from '../domain/errors.ts';
import { type JsonNode, parseJsonBytes, toValue } from '../domain/json.ts';
import { parseRfc3339 } from '../domain/time.ts';
import { isUuid } from '../domain/uuid.ts';

/**
 * The file of an export: JSON lines, so that ledgers of any length are written and read a line at a time.
 *
 *   {"format":"ledger-trust-export/1","ledger_id":…,"exported_at":…}    of a master also "master_id"
 *   {"event":{…}}          as REST has it, in order, one line each
 *   {"actor":{…}}          resolver document of everyone who wrote an event
 *   {"authority":{…}}      trust anchor
 *   {"end":{"count":…,"kind":…}}    without it the file was cut short
 *
 * The end says what the events are, as far as whoever exported them could know: a whole `ledger`, from its start to where it ended then; a
 * whole `master`; or a `segment`, where events are missing between those that were handed out. Exports of before say nothing of it,
 * and do not name the master.
 */
export const exportFormat = 'ledger-trust-export/1';

/** What the first line says. */
export interface ExportHeader {
  readonly ledgerId: string;
  /** Null of a ledger. */
  readonly masterId: string | null;
}

/** Reads the first line of a file; null where it is that of no export. */
export function readExportHeader(line: Uint8Array): ExportHeader | null {
  const value = jsonOf(line);
  if (typeof value !== 'object' || value === null || !('format' in value) || value.format !== exportFormat) return null;
  const names = ['format', 'ledger_id', 'exported_at'];
  const header = membersOf(value, names) ?? membersOf(value, [...names, 'master_id']);
  const { ledger_id: ledgerId, master_id: masterId, exported_at: exportedAt } = header ?? {};
  const isHeader = isId(ledgerId) && (masterId === undefined || isId(masterId));
  if (!isHeader || typeof exportedAt !== 'string' || parseRfc3339(exportedAt) === null)
    throw invalidAnswer('The first line', 'format, ledger_id, master_id of a master, exported_at, and nothing else');
  return { ledgerId, masterId: masterId ?? null };
}

export function isId(value: unknown): value is string {
  return typeof value === 'string' && isUuid(value);
}

function jsonOf(line: Uint8Array): unknown {
  try {
    return toValue(parseJsonBytes(line));
  } catch (error) {
    if (error instanceof LedgerError) return null;
    throw error;
  }
}

/** An object that has all of these members and no other; null of anything else. */
function membersOf(value: unknown, names: readonly string[]): Readonly<Record<string, unknown>> | null {
  if (typeof value !== 'object' || value === null) return null;
  const isSame = Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));
  return isSame ? (value as Record<string, unknown>) : null;
}

export const exportKinds = ['ledger', 'master', 'segment'] as const;
export type ExportKind = (typeof exportKinds)[number];

const lineKinds = ['event', 'actor', 'authority', 'end'] as const;

/** A line behind the first. */
export interface ExportLine {
  readonly kind: (typeof lineKinds)[number];
  readonly value: JsonNode;
}

/** Null where no export has such a line: another reader would see in it what was never verified. */
export function readExportLine(line: JsonNode): ExportLine | null {
  if (line.kind !== 'object') return null;
  const [member, ...more] = line.members;
  const kind = lineKinds.find((known) => known === member?.name);
  return member === undefined || kind === undefined || more.length > 0 ? null : { kind, value: member.value };
}

/** What the last line says. */
export interface ExportEnd {
  readonly count: number;
  readonly kind: ExportKind | null;
}

/** Reads the end of an export; null where it is none. */
export function readExportEnd(value: unknown): ExportEnd | null {
  const end = membersOf(value, ['count', 'kind']) ?? membersOf(value, ['count']);
  if (end === null || typeof end.count !== 'number') return null;
  if (!Object.hasOwn(end, 'kind')) return { count: end.count, kind: null };
  const kind = exportKinds.find((known) => known === end.kind);
  return kind === undefined ? null : { count: end.count, kind };
}
