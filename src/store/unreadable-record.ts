import { channel } from 'node:diagnostics_channel';
import { LedgerError } from '../domain/errors.ts';

interface Unreadable {
  /** Kind of the record, or another kind of stored value such as `line`, `cell` or `head`. */
  readonly kind: string;
  readonly id: string;
  readonly error: unknown;
}

/** A StoredRecord is a StoredText. */
interface StoredText {
  readonly kind: string;
  readonly id: string;
  readonly value: string;
}

/** One channel for the process, because many readers deep in the code report to the one node that logs and counts. */
const found = channel('ledger-trust:unreadable');

/** Calls `report` for each unreadable value that this process finds. Returns a function that ends that. */
export function onUnreadable(report: (unreadable: Unreadable) => void): () => void {
  const listener = (message: unknown) => report(message as Unreadable);
  found.subscribe(listener);
  return () => void found.unsubscribe(listener);
}

export function tellUnreadable(unreadable: Unreadable): void {
  found.publish(unreadable);
}

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

/** Reports an unreadable value and returns its error. `reason` says what is wrong with the value. */
export function unreadableRecord(kind: string, id: string, reason: string): UnreadableRecord {
  const unreadable = { kind, id, error: new TypeError(reason) };
  tellUnreadable(unreadable);
  return new UnreadableRecord(unreadable);
}

/** If `decode` throws, reports the text and throws UnreadableRecord. */
export function decodeStored<T>({ kind, id, value }: StoredText, decode: (value: string) => T): T {
  try {
    return decode(value);
  } catch (error) {
    const unreadable = { kind, id, error };
    tellUnreadable(unreadable);
    throw new UnreadableRecord(unreadable);
  }
}

/** For loops, where one damaged record must not stop the others: reports a damaged text, returns undefined. */
export function decodeOrPassOver<T>({ kind, id, value }: StoredText, decode: (value: string) => T): T | undefined {
  try {
    return decode(value);
  } catch (error) {
    tellUnreadable({ kind, id, error });
    return undefined;
  }
}

/** Returns null if the read failed with UnreadableRecord, which was reported. */
export async function passOverDamaged<T>(read: Promise<T>): Promise<T | null> {
  try {
    return await read;
  } catch (error) {
    if (!(error instanceof UnreadableRecord)) throw error;
    return null;
  }
}

export function storedLine(list: string, value: string): StoredText {
  return { kind: 'line', id: list, value };
}

export function storedCell(key: string, value: string): StoredText {
  return { kind: 'cell', id: key, value };
}
