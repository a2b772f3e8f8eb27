import { channel } from 'node:diagnostics_channel';
import { LedgerError } from '../domain/errors.ts';
import type { FindPage, FoundRecord, RecordStore } from './record-store.ts';

/** Something in a store that is not what the service writes there. */
export interface Unreadable {
  /** Kind of the record; `line` or `cell` for what stands beside the logs. */
  readonly kind: string;
  readonly id: string;
  readonly error: unknown;
}

/** A text in a store, and what it is. A StoredRecord is one. */
export interface StoredText {
  readonly kind: string;
  readonly id: string;
  readonly value: string;
}

/** One channel for the process: readers are many and deep, and the node that logs and counts is one. */
const found = channel('ledger-trust:unreadable');

/** Calls `told` for everything that this process finds unreadable, each time that it does. Answers what ends that. */
export function onUnreadable(told: (unreadable: Unreadable) => void): () => void {
  const listener = (message: unknown) => told(message as Unreadable);
  found.subscribe(listener);
  return () => void found.unsubscribe(listener);
}

export function tellUnreadable(unreadable: Unreadable): void {
  found.publish(unreadable);
}

/** A call needs a record that is damaged. */
export class UnreadableRecord extends LedgerError {
  constructor({ kind, id, error }: Unreadable) {
    const reason =
      error instanceof SyntaxError ? 'its value is no JSON' : error instanceof Error ? error.message : error;
    super(
      'internal',
      `A stored record of kind ${kind} that this call needs is damaged: the operator finds it in the log and has to restore it from a backup.`,
      { kind },
      new Error(`the stored ${kind} record ${JSON.stringify(id)} is damaged: ${reason}`, { cause: error }),
    );
    this.name = 'UnreadableRecord';
  }
}

/** One of which a sentence says what is wrong; it is told. */
export function unreadableRecord(kind: string, id: string, reason: string): UnreadableRecord {
  const unreadable = { kind, id, error: new TypeError(reason) };
  tellUnreadable(unreadable);
  return new UnreadableRecord(unreadable);
}

/** What `decode` makes of a stored text. Throws UnreadableRecord where it throws. */
export function decodeStored<T>(stored: StoredText, decode: (value: string) => T): T {
  try {
    return decode(stored.value);
  } catch (error) {
    const unreadable = { kind: stored.kind, id: stored.id, error };
    tellUnreadable(unreadable);
    throw new UnreadableRecord(unreadable);
  }
}

/**
 * The same in a loop over what belongs to many, where one damaged record must not stop the others: undefined for one that cannot be read,
 * which is told.
 */
export function decodeOrPassOver<T>(stored: StoredText, decode: (value: string) => T): T | undefined {
  try {
    return decode(stored.value);
  } catch (error) {
    tellUnreadable({ kind: stored.kind, id: stored.id, error });
    return undefined;
  }
}

/** What a read answers; null where the record that it needs is damaged, which was told. For reads in a loop. */
export async function passOverDamaged<T>(read: Promise<T>): Promise<T | null> {
  try {
    return await read;
  } catch (error) {
    if (!(error instanceof UnreadableRecord)) throw error;
    return null;
  }
}

/** A line or cell beside the logs, in the form that the decoders take. */
export function storedLine(list: string, value: string): StoredText {
  return { kind: 'line', id: list, value };
}

export function storedCell(key: string, value: string): StoredText {
  return { kind: 'cell', id: key, value };
}

/** A JSON object, with these members of these types. Throws for anything else. */
export function parseMembers<T>(text: string, types: MemberTypes<T> = {}): T {
  const value: unknown = JSON.parse(text);
  checkMembers(value, types);
  return value as T;
}

/** Throws for what is no object with these members. */
export function checkMembers<T>(value: unknown, types: MemberTypes<T>): void {
  if (!isOfType(value, 'object')) throw new TypeError('This is no object.');
  for (const [name, type] of Object.entries(types)) {
    const member: unknown = (value as Record<string, unknown>)[name];
    if (!isOfType(member, type as MemberType)) throw new TypeError(`Member ${name} is no ${type}.`);
  }
}

type MemberTypes<T> = Partial<Record<keyof T & string, MemberType>>;

type MemberType = 'text' | 'text or null' | 'time' | 'time or null' | 'count' | 'object' | 'list';

function isOfType(value: unknown, type: MemberType): boolean {
  switch (type) {
    case 'text':
      return typeof value === 'string';
    case 'text or null':
      return value === null || typeof value === 'string';
    case 'time':
      return typeof value === 'string' && !Number.isNaN(Date.parse(value));
    case 'time or null':
      return value === null || isOfType(value, 'time');
    case 'count':
      return Number.isSafeInteger(value) && (value as number) >= 0;
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    case 'list':
      return Array.isArray(value);
  }
}

/** A record as it was found, and what was made of it. */
export interface Decoded<T> {
  readonly record: FoundRecord;
  readonly value: T;
}

/** Records by a look-up, as RecordStore.find, without those that cannot be read: others take their places on the page. */
export async function findReadable<T>(
  store: Pick<RecordStore, 'find'>,
  kind: string,
  lookup: { readonly name: string; readonly value: string },
  page: FindPage,
  decode: (record: FoundRecord) => T,
): Promise<Decoded<T>[]> {
  const readable: Decoded<T>[] = [];
  let behind = page;
  while (readable.length < page.limit) {
    const limit = page.limit - readable.length;
    const records = await store.find(kind, lookup, { ...behind, limit });
    for (const record of records) {
      const value = decodeOrPassOver(record, () => decode(record));
      if (value !== undefined) readable.push({ record, value });
    }
    const last = records.at(-1);
    if (last === undefined || records.length < limit) break;
    behind = { ...page, offset: 0, after: last };
  }
  return readable;
}
