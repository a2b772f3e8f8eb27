import { LedgerError } from '../errors.ts';
import { sha256HexForm } from '../keys/hash.ts';
import { contentHash, contentJson, text } from './content.ts';
import type { ActorType, CommandKey, LedgerEvent } from './event.ts';

/**
 * The stored form of an event: five lines of text, so that the bytes that were hashed are the bytes that are stored.
 *
 *   svc1                 format
 *   {content}            canonical JSON, exactly what content_hash covers
 *   {payload}            canonical JSON
 *   {signed payload}     canonical JSON, or empty if the payload itself was signed
 *   {seal}               hash, prev_hash, authority seal, command keys: what the server adds to the content
 *
 * Canonical JSON has no line breaks, so the lines need no escaping.
 */
const format = 'svc1';

const otherFormat = /^svc\d{1,3}\n/;

/** A stored row that does not hold an event. */
export class CorruptRow extends Error {
  constructor() {
    super('a stored row is no event any more');
    this.name = 'CorruptRow';
  }
}

interface SealLine {
  readonly hash: string;
  readonly prev_hash: string;
  readonly authority_sig: string | null;
  readonly authority_key_id: string | null;
  readonly commands: readonly CommandKey[];
}

interface ContentLine {
  readonly actor_id: string | null;
  readonly actor_sig: string | null;
  readonly actor_sig_payload_hash: string | null;
  readonly actor_type: ActorType;
  readonly caused_by_hash: string | null;
  readonly created_at: string;
  readonly event_type: string;
  readonly id: string;
  readonly ledger_id: string;
  readonly master: { readonly id: string; readonly prev_hash: string; readonly seq: number } | null;
  readonly payload_hash: string;
  readonly seq: number;
  readonly signing_key_id: string | null;
}

/** `content`: the canonical JSON of the content, if it was made already. */
export function formatRow(event: LedgerEvent, content: string = contentJson(event)): string {
  return (
    `${format}\n${content}\n${event.payload}\n${event.actorSigPayload ?? ''}\n` +
    `{"hash":"${event.hash}","prev_hash":"${event.prevHash}","authority_sig":${text(event.authoritySig)}` +
    `,"authority_key_id":${text(event.authorityKeyId)},"commands":[${event.commands.map(commandText).join(',')}]}`
  );
}

function commandText(command: CommandKey): string {
  return `{"id":${JSON.stringify(command.id)},"fingerprint":${JSON.stringify(command.fingerprint)},"permanent":${command.permanent}}`;
}

/**
 * `contentHash` is computed from the stored content. Hashes and links are not checked here (integrity.ts). Throws
 * LedgerError `unavailable` for a row of another format, so that the ledger is not served wrongly, and CorruptRow for a
 * row that does not hold an event.
 */
export function parseRow(row: string): LedgerEvent {
  if (!row.startsWith(`${format}\n`)) throw otherFormat.test(row) ? unreadable() : new CorruptRow();
  const content = format.length + 1;
  const payload = row.indexOf('\n', content) + 1;
  const signed = row.indexOf('\n', payload) + 1;
  const seal = row.indexOf('\n', signed) + 1;
  if (payload === 0 || signed === 0 || seal === 0) throw new CorruptRow();
  const contentText = row.slice(content, payload - 1);
  const inside = parseLine(contentText, isContentLine);
  const outside = parseLine(row.slice(seal), isSealLine);
  return {
    id: inside.id,
    ledgerId: inside.ledger_id,
    seq: inside.seq,
    eventType: inside.event_type,
    actorId: inside.actor_id,
    actorType: inside.actor_type,
    createdAt: inside.created_at,
    causedByHash: inside.caused_by_hash,
    master: inside.master && { id: inside.master.id, prevHash: inside.master.prev_hash, seq: inside.master.seq },
    payloadHash: inside.payload_hash,
    actorSig: inside.actor_sig,
    actorSigPayloadHash: inside.actor_sig_payload_hash,
    signingKeyId: inside.signing_key_id,
    payload: row.slice(payload, signed - 1),
    actorSigPayload: seal - 1 === signed ? null : row.slice(signed, seal - 1),
    contentHash: contentHash(contentText),
    prevHash: outside.prev_hash,
    hash: outside.hash,
    authoritySig: outside.authority_sig,
    authorityKeyId: outside.authority_key_id,
    commands: outside.commands,
  };
}

export type Members = Readonly<Record<string, unknown>>;

function parseLine<T>(line: string, isForm: (value: Members) => value is T & Members): T {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new CorruptRow();
  }
  if (!isMembers(value) || !isForm(value)) throw new CorruptRow();
  return value;
}

/** Checks the types only. Readers of the event rely on them before its hashes are checked. */
function isContentLine(line: Members): line is ContentLine & Members {
  return (
    isText(line.id) &&
    isText(line.ledger_id) &&
    isCount(line.seq) &&
    isText(line.event_type) &&
    isText(line.actor_type) &&
    isText(line.created_at) &&
    isText(line.payload_hash) &&
    isTextOrNull(line.actor_id) &&
    isTextOrNull(line.actor_sig) &&
    isTextOrNull(line.actor_sig_payload_hash) &&
    isTextOrNull(line.caused_by_hash) &&
    isTextOrNull(line.signing_key_id) &&
    (line.master === null || isMasterLine(line.master))
  );
}

function isMasterLine(value: unknown): boolean {
  return isMembers(value) && isText(value.id) && isText(value.prev_hash) && isCount(value.seq);
}

/** Hashes must be hex here: otherwise the chain hash would depend on how they are misread. */
function isSealLine(line: Members): line is SealLine & Members {
  return (
    isText(line.hash) &&
    sha256HexForm.test(line.hash) &&
    isText(line.prev_hash) &&
    (line.prev_hash === '' || sha256HexForm.test(line.prev_hash)) &&
    isTextOrNull(line.authority_sig) &&
    isTextOrNull(line.authority_key_id) &&
    Array.isArray(line.commands) &&
    line.commands.every(isCommandKey)
  );
}

function isCommandKey(value: unknown): boolean {
  return isMembers(value) && isText(value.id) && isText(value.fingerprint) && typeof value.permanent === 'boolean';
}

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string';
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function unreadable(): LedgerError {
  return new LedgerError('unavailable', 'An event of this ledger is stored in a form that this version cannot read.');
}
