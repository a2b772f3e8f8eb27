import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { actorDocumentFromJson, authorityDocumentFromJson, eventFromJson } from '../../client/call/answer-encoding.ts';
import { ANSWER_MAX_BYTES } from '../../client/call/http-sender.ts';
import { invalidAnswer } from '../../client/error.ts';
import type { Event } from '../../client/event.ts';
import type { ActorDocument, AuthorityDocument } from '../../client/verify/key-source.ts';
import type { VerifyOptions } from '../../client/verify/verifying.ts';
import { parseJsonBytes, toValue } from '../../domain/json/json.ts';
import { parseCheckpoint } from '../../domain/log/checkpoint.ts';
import { ProofRefused } from '../../domain/log/proof-refused.ts';
import {
  type ExportEnd,
  type ExportHeader,
  type ExportLine,
  isId,
  readExportEnd,
  readExportHeader,
  readExportLine,
} from '../commands/export-file.ts';
import { contentOf, readJson } from '../commands/file-content.ts';
import { isBlank, type Line, linesOf } from '../terminal/lines.ts';
import { type InputBound, inputError, nameOf, readInput, reasonOf, type Terminal } from '../terminal/terminal.ts';

export interface VerifyInput {
  readonly kind: VerifyOptions['kind'];
  /** `some` if a filter or a partial access may have left events out: the file does not say. */
  readonly extent: 'all' | 'some';
  /** The ledger and the master that the file names. null if it names none. */
  readonly ledgerId: string | null;
  readonly masterId: string | null;
  readonly count: number;
  events(): Iterable<Event> | AsyncIterable<Event>;
  /** Documents in the file itself. They come from the maker of the file. */
  readonly actors: readonly ActorDocument[];
  readonly authority: AuthorityDocument | null;
  /** The signed note that the file holds. It was not verified. */
  readonly checkpoint: string | null;
  /** The file says that more events follow what it holds. */
  readonly goesOn: boolean;
}

/** Deep enough for any payload in an event, in a list, in an answer. */
const jsonDepthMax = 128;
/** The first line of an export is short. */
const HEADER_MAX_BYTES = 4 * 1024;
const CARRIAGE_RETURN = 0x0d;
/** Of what is kept in memory: answers of the API, lists of them, and stdin. */
const keptInput: InputBound = {
  maxBytes: ANSWER_MAX_BYTES,
  advice: 'name the file of an export, which may be of any size',
};

const ACTOR_DOCUMENT = 'resolver document';
const AUTHORITY_DOCUMENT = 'trust anchor document';

/** A file, or stdin. stdin is kept in memory, because it can be read only once. */
interface Source {
  readonly name: string;
  /** null if the file is no export. */
  readonly header: ExportHeader | null;
  /** Can be called repeatedly. */
  lines(): AsyncIterable<Line>;
  /** The whole file as JSON that should hold `what`. Parses strictly (RFC 7493). Throws CliError (exit code 66). */
  json(what: string): Promise<unknown>;
}

async function openSource(terminal: Terminal, path: string): Promise<Source> {
  const kept = path === '-' ? await readInput(terminal, path, keptInput) : null;
  const name = nameOf(path);
  const beginning = kept === null ? await beginningOf(path) : kept.subarray(0, HEADER_MAX_BYTES);
  const header = contentOf(path, 'export', () => {
    const line = firstLineIn(beginning);
    return line === null ? null : readExportHeader(line);
  });
  return {
    name,
    header,
    lines: () => linesOf(kept === null ? createReadStream(path) : [kept], name),
    json: async (what) => {
      const bytes = kept ?? (await readInput(terminal, path, keptInput));
      return toValue(contentOf(path, what, () => parseJsonBytes(bytes, jsonDepthMax)));
    },
  };
}

/** The whole first line of a file with this beginning. Returns null if the line is longer than that of an export. */
function firstLineIn(beginning: Buffer): Buffer | null {
  const end = beginning.indexOf('\n');
  if (end === -1) return beginning.length < HEADER_MAX_BYTES ? beginning : null;
  return withoutReturn(beginning.subarray(0, end));
}

/** The line without a carriage return at its end: Windows puts one before the line feed. */
function withoutReturn(line: Buffer): Buffer {
  return line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
}

async function beginningOf(path: string): Promise<Buffer> {
  try {
    await using file = await open(path);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_MAX_BYTES), 0, HEADER_MAX_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    throw inputError(`${path} cannot be read: ${reasonOf(error)}.`);
  }
}

/** Reads an export, a saved answer of an event list, or a bare list of events. Throws CliError (exit code 66). */
export async function readVerifyInput(terminal: Terminal, path: string): Promise<VerifyInput> {
  const source = await openSource(terminal, path);
  if (source.header !== null) return readExport(source, source.header);
  const value = await source.json('events');
  return contentOf(path, 'events', () => readAnswer(value, source.name));
}

function readAnswer(value: unknown, name: string): VerifyInput {
  const answer = Array.isArray(value) ? { events: value } : value;
  if (typeof answer !== 'object' || answer === null || !('events' in answer) || !Array.isArray(answer.events)) {
    throw inputError(`${name} holds no events: give an export, or a saved answer of an event list.`);
  }
  const events = answer.events.map(eventFromJson);
  // A list that was requested newest first is verified in the order of the chain.
  const [first] = events;
  const last = events.at(-1);
  if (first !== undefined && last !== undefined && first.seq > last.seq) events.reverse();
  // The answer does not say which filter it was requested with, nor how much its reader may see.
  const kind = 'master_uuid' in answer ? 'master' : 'segment';
  const goesOn = 'next_cursor' in answer && answer.next_cursor !== null;
  return {
    kind,
    extent: 'some',
    ledgerId: idOf(answer, 'ledger_id'),
    masterId: idOf(answer, 'master_uuid'),
    count: events.length,
    events: () => events,
    actors: [],
    authority: null,
    checkpoint: null,
    goesOn,
  };
}

function idOf(answer: object, name: 'ledger_id' | 'master_uuid'): string | null {
  const id = (answer as Readonly<Record<string, unknown>>)[name] ?? null;
  if (id !== null && !isId(id)) throw invalidAnswer(name, 'a UUID');
  return id;
}

/** Reads the file twice: first for the documents, which are behind the events, then for the events, lazily. */
async function readExport(source: Source, header: ExportHeader): Promise<VerifyInput> {
  const { name } = source;
  const actors = new Map<string, ActorDocument>();
  let authority: AuthorityDocument | null = null;
  let checkpoint: string | null = null;
  let count = 0;
  let end: ExportEnd | null = null;
  for await (const { place, kind, value } of exportLines(source)) {
    if (end !== null) throw inputError(`${place} stands behind the end of the export.`);
    switch (kind) {
      case 'event':
        count += 1;
        break;
      case 'actor': {
        const document = contentOf(place, ACTOR_DOCUMENT, () => actorDocumentFromJson(toValue(value)));
        if (actors.has(document.actorId)) throw inputError(`${place} holds a second ${ACTOR_DOCUMENT} of an actor.`);
        actors.set(document.actorId, document);
        break;
      }
      case 'authority':
        if (authority !== null) throw inputError(`${place} holds a second ${AUTHORITY_DOCUMENT}.`);
        authority = contentOf(place, AUTHORITY_DOCUMENT, () => authorityDocumentFromJson(toValue(value)));
        break;
      case 'checkpoint': {
        if (checkpoint !== null || !header.hasCheckpoint)
          throw inputError(
            `${place} holds ${checkpoint === null ? 'a' : 'a second'} checkpoint, which no export does.`,
          );
        const note = toValue(value);
        if (typeof note !== 'string') throw inputError(`${place} holds no checkpoint.`);
        checkFormOfNote(note, place);
        checkpoint = note;
        break;
      }
      case 'end':
        end = readExportEnd(toValue(value));
        if (end === null) throw inputError(`${place} holds no end of an export.`);
        break;
    }
  }
  if (end?.count !== count) {
    throw inputError(`${name} was cut short or changed: its end does not tell the ${count} events that it holds.`);
  }
  const events = async function* (): AsyncIterable<Event> {
    for await (const { place, kind, value } of exportLines(source)) {
      // Parsed again, because texts in `value` may be slices of the line and keep all of it in memory.
      if (kind === 'event') yield contentOf(place, 'event', () => eventFromJson(JSON.parse(value.canonical)));
    }
  };
  const kind = end.kind ?? 'segment';
  if (kind === 'segment' && checkpoint !== null)
    throw inputError(`${name} is a segment and holds a checkpoint, which no export does.`);
  const extent = kind === 'segment' ? 'some' : 'all';
  const { ledgerId, masterId } = header;
  const documents = { actors: [...actors.values()], authority, checkpoint };
  return { kind, extent, ledgerId, masterId, count, events, ...documents, goesOn: false };
}

/** The form alone: whether a key signed the note is seen only where somebody trusts one. */
function checkFormOfNote(note: string, place: string): void {
  try {
    parseCheckpoint(note);
  } catch (error) {
    if (!(error instanceof ProofRefused)) throw error;
    throw inputError(`${place}: ${error.message}`);
  }
}

/** Yields the lines after the first, with their names in errors. Skips white space, which editors leave at the end. */
async function* exportLines({ name, lines }: Source): AsyncIterable<ExportLine & { readonly place: string }> {
  for await (const { number, bytes: ended } of lines()) {
    const bytes = withoutReturn(ended);
    const place = `Line ${number} of ${name}`;
    // Other programs end a line at a carriage return, so they would see two lines where this one sees one.
    if (bytes.includes(CARRIAGE_RETURN)) throw inputError(`${place} holds a carriage return, which no export does.`);
    if (number === 1 || isBlank(bytes)) continue;
    const line = readExportLine(contentOf(place, 'JSON (RFC 7493)', () => parseJsonBytes(bytes, jsonDepthMax)));
    if (line === null) {
      throw inputError(
        `${place} is none that export writes: an object with event, actor, authority, checkpoint or end, and no more.`,
      );
    }
    yield { place, ...line };
  }
}

/** Reads files that each hold one resolver document, a list of them, or an export. Throws CliError (exit code 66). */
export async function readActorDocuments(terminal: Terminal, paths: readonly string[]): Promise<ActorDocument[]> {
  const documents: ActorDocument[] = [];
  for (const path of paths) {
    const source = await openSource(terminal, path);
    if (source.header !== null) documents.push(...(await readExport(source, source.header)).actors);
    else {
      const value = await source.json(ACTOR_DOCUMENT);
      documents.push(
        ...contentOf(path, ACTOR_DOCUMENT, () => (Array.isArray(value) ? value : [value]).map(actorDocumentFromJson)),
      );
    }
  }
  return documents;
}

/** Throws CliError (exit code 66) if the file holds no trust anchor document. */
export async function readAuthorityDocument(terminal: Terminal, path: string): Promise<AuthorityDocument> {
  const value = toValue(await readJson(terminal, path, AUTHORITY_DOCUMENT, jsonDepthMax));
  return contentOf(path, AUTHORITY_DOCUMENT, () => authorityDocumentFromJson(value));
}
