import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { actorDocumentFromJson, authorityDocumentFromJson, eventFromJson } from '../client/answer-encoding.ts';
import type { Event } from '../client/event.ts';
import type { ActorDocument, AuthorityDocument } from '../client/key-source.ts';
import { parseJson, toValue } from '../domain/json.ts';
import { isExportHeader } from './export-file.ts';
import { contentOf, readJson } from './file-content.ts';
import { inputError, reasonOf, type Terminal } from './terminal.ts';

/** What a file holds for verification. */
export interface VerifyInput {
  readonly kind: 'ledger' | 'master' | 'segment';
  /** Of the events. */
  readonly count: number;
  events(): Iterable<Event> | AsyncIterable<Event>;
  /** Documents in the file itself: they are from whoever made it. */
  readonly actors: readonly ActorDocument[];
  readonly authority: AuthorityDocument | null;
  /** The file says that more events follow what it holds. */
  readonly goesOn: boolean;
}

/** Deeper than any payload, in an event, in a list, in an answer. */
const jsonLimits = { maxDepth: 128 };
/** A line holds an event of at most 256 KiB of payload, once more as signed, and its fields; the first line is short. */
const HEADER_MAX_BYTES = 4 * 1024;

const ACTOR_DOCUMENT = 'resolver document';
const AUTHORITY_DOCUMENT = 'trust anchor document';

/** Reads an export, a saved answer of an event list, or a bare list of events; JSON is read strictly (RFC 7493). */
export async function readVerifyInput(terminal: Terminal, path: string): Promise<VerifyInput> {
  if (path !== '-' && isExportHeader(await firstLine(path))) return readExport(path);
  const value = toValue(await readJson(terminal, path, 'events', jsonLimits));
  return contentOf(path, 'events', () => readAnswer(value, path));
}

async function firstLine(path: string): Promise<string> {
  try {
    await using file = await open(path);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_MAX_BYTES), 0, HEADER_MAX_BYTES, 0);
    return buffer.toString('utf8', 0, bytesRead).split('\n')[0] ?? '';
  } catch (error) {
    throw inputError(`${path} cannot be read: ${reasonOf(error)}.`);
  }
}

function readAnswer(value: unknown, path: string): VerifyInput {
  const answer = Array.isArray(value) ? { events: value } : value;
  if (typeof answer !== 'object' || answer === null || !('events' in answer) || !Array.isArray(answer.events)) {
    throw inputError(`${path} holds no events: give an export, or a saved answer of an event list.`);
  }
  const events = answer.events.map(eventFromJson);
  // A list that was asked for newest first is checked in the order of the chain.
  const [first] = events;
  const last = events.at(-1);
  if (first !== undefined && last !== undefined && first.seq > last.seq) events.reverse();
  const kind = 'master_uuid' in answer ? 'master' : 'scope_id' in answer ? 'segment' : 'ledger';
  const goesOn = 'next_cursor' in answer && answer.next_cursor !== null;
  return { kind, count: events.length, events: () => events, actors: [], authority: null, goesOn };
}

/** Reads the file twice: for the documents, which stand behind the events, and then, as it is verified, for the events. */
async function readExport(path: string): Promise<VerifyInput> {
  const actors: ActorDocument[] = [];
  let authority: AuthorityDocument | null = null;
  let count = 0;
  let end: unknown;
  for await (const line of linesOf(path)) {
    if (end !== undefined) throw inputError(`${path} goes on behind its end.`);
    if (line.startsWith('{"event":')) {
      count += 1;
      continue;
    }
    const value = objectOf(line, path);
    if ('actor' in value) actors.push(contentOf(path, ACTOR_DOCUMENT, () => actorDocumentFromJson(value.actor)));
    else if ('authority' in value)
      authority = contentOf(path, AUTHORITY_DOCUMENT, () => authorityDocumentFromJson(value.authority));
    else if ('end' in value) end = value.end;
  }
  if (typeof end !== 'object' || end === null || !('count' in end) || end.count !== count) {
    throw inputError(`${path} was cut short or changed: its end does not tell the ${count} events that it holds.`);
  }
  const events = async function* (): AsyncIterable<Event> {
    for await (const line of linesOf(path)) {
      if (line.startsWith('{"event":'))
        yield contentOf(path, 'events', () => eventFromJson(objectOf(line, path).event));
    }
  };
  return { kind: 'ledger', count, events, actors, authority, goesOn: false };
}

function linesOf(path: string): AsyncIterable<string> {
  return createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Number.POSITIVE_INFINITY });
}

function objectOf(line: string, path: string): Record<string, unknown> {
  const value = contentOf(path, 'export', () => toValue(parseJson(line, jsonLimits)));
  if (typeof value !== 'object' || value === null) throw inputError(`${path} holds a line that is no JSON object.`);
  return value as Record<string, unknown>;
}

/** Resolver documents from files: one, a list of them, or those of an export. */
export async function readActorDocuments(terminal: Terminal, paths: readonly string[]): Promise<ActorDocument[]> {
  const documents: ActorDocument[] = [];
  for (const path of paths) {
    if (path !== '-' && isExportHeader(await firstLine(path))) documents.push(...(await readExport(path)).actors);
    else {
      const value = toValue(await readJson(terminal, path, ACTOR_DOCUMENT, jsonLimits));
      documents.push(
        ...contentOf(path, ACTOR_DOCUMENT, () => (Array.isArray(value) ? value : [value]).map(actorDocumentFromJson)),
      );
    }
  }
  return documents;
}

/** A trust anchor document from a file. */
export async function readAuthorityDocument(terminal: Terminal, path: string): Promise<AuthorityDocument> {
  const value = toValue(await readJson(terminal, path, AUTHORITY_DOCUMENT, jsonLimits));
  return contentOf(path, AUTHORITY_DOCUMENT, () => authorityDocumentFromJson(value));
}
