import { invalidAnswer } from '../../client/error.ts';
import { LedgerError } from '../../domain/errors.ts';
import { type JsonNode, parseJsonBytes, toValue } from '../../domain/json/json.ts';
import { parseRfc3339 } from '../../domain/values/time.ts';
import { isUuid } from '../../domain/values/uuid-form.ts';

/**
 * The file of an export: JSON lines, so that ledgers of any length are read a line at a time.
 *
 *    {"format":"ledger-trust-export/2","ledger_id":…,"exported_at":…}    of a master also "master_id"
 *    {"event":{…}}          as in REST, in order, one line each
 *    {"actor":{…}}          resolver document of each author of an event
 *    {"authority":{…}}      trust anchor
 *    {"checkpoint":"…"}     signed note over all these events; not of a segment
 *    {"end":{"count":…,"kind":…}}    without it the file was cut short
 *
 * The end says what the events are, as far as the exporting reader can know: a whole `ledger`, from its start to its
 * newest event at that time; a whole `master`; or a `segment`, with events missing in between.
 *
 * The order of events behind the last seal is the service's word only if a checkpoint covers it. Where the service
 * gives none, the line is left out. Format 1 has no such line, and its oldest exports have no `kind` and no
 * `master_id`.
 */
export const exportFormat = 'ledger-trust-export/2';
const formatBefore = 'ledger-trust-export/1';

export interface ExportHeader {
  /** Whether exports of this format may hold a checkpoint. */
  readonly hasCheckpoint: boolean;
  readonly ledgerId: string;
  /** null for the export of a ledger. */
  readonly masterId: string | null;
}

/** Returns null if the file is no export. Throws LedgerTrustError `invalid_answer` if an export begins wrongly. */
export function readExportHeader(line: Uint8Array): ExportHeader | null {
  const value = jsonOf(line);
  if (typeof value !== 'object' || value === null || !('format' in value)) return null;
  if (value.format !== exportFormat && value.format !== formatBefore) return null;
  const names = ['format', 'ledger_id', 'exported_at'];
  const header = membersOf(value, names) ?? membersOf(value, [...names, 'master_id']);
  const { ledger_id: ledgerId, master_id: masterId, exported_at: exportedAt } = header ?? {};
  const isHeader = isId(ledgerId) && (masterId === undefined || isId(masterId));
  if (!isHeader || typeof exportedAt !== 'string' || parseRfc3339(exportedAt) === null)
    throw invalidAnswer('The first line', 'format, ledger_id, master_id of a master, exported_at, and nothing else');
  return { hasCheckpoint: value.format === exportFormat, ledgerId, masterId: masterId ?? null };
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

/** Returns the value if it is an object with exactly these members, else null. */
function membersOf(value: unknown, names: readonly string[]): Readonly<Record<string, unknown>> | null {
  if (typeof value !== 'object' || value === null) return null;
  const isSame = Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));
  return isSame ? (value as Record<string, unknown>) : null;
}

const exportKinds = ['ledger', 'master', 'segment'] as const;
export type ExportKind = (typeof exportKinds)[number];

const lineKinds = ['event', 'actor', 'authority', 'checkpoint', 'end'] as const;

export interface ExportLine {
  readonly kind: (typeof lineKinds)[number];
  readonly value: JsonNode;
}

/** Returns null if export writes no line of this form: another reader could take its content for verified. */
export function readExportLine(line: JsonNode): ExportLine | null {
  if (line.kind !== 'object') return null;
  const [member, ...more] = line.members;
  const kind = lineKinds.find((known) => known === member?.name);
  return member === undefined || kind === undefined || more.length > 0 ? null : { kind, value: member.value };
}

/** The content of the last line. `kind` is null in exports of earlier versions. */
export interface ExportEnd {
  readonly count: number;
  readonly kind: ExportKind | null;
}

export function readExportEnd(value: unknown): ExportEnd | null {
  const end = membersOf(value, ['count', 'kind']) ?? membersOf(value, ['count']);
  if (end === null || typeof end.count !== 'number') return null;
  if (!Object.hasOwn(end, 'kind')) return { count: end.count, kind: null };
  const kind = exportKinds.find((known) => known === end.kind);
  return kind === undefined ? null : { count: end.count, kind };
}
