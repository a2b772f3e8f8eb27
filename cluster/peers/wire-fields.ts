import { LedgerError } from '../../src/domain/errors.ts';
import { isMembers } from '../../src/domain/event/row.ts';
import { type JsonObject, parseJson } from '../../src/domain/json/json.ts';
import { isoTime, parseRfc3339 } from '../../src/domain/values/time.ts';
import { isUuid } from '../../src/domain/values/uuid-form.ts';
import { limits } from '../../src/runtime/limits/limits.ts';

/** A command of another node that this node cannot read, perhaps of another version. */
export class UnreadableCommand extends TypeError {
  constructor(what: string, options?: ErrorOptions) {
    super(`another node sent a command that cannot be read: ${what}`, options);
    this.name = 'UnreadableCommand';
  }
}

/** Reads one field. `value` is undefined if the field is missing. Throws UnreadableCommand. */
export type FieldReader<T> = (value: unknown, field: string) => T;

/** A reader for each field of T, including optional ones. */
export type FieldReaders<T> = { readonly [field in keyof T]-?: FieldReader<T[field]> };

/** Reads the fields that have readers, and ignores all others. Throws UnreadableCommand. */
export function readFields<T>(readers: FieldReaders<T>, value: unknown, field: string): T {
  if (!isMembers(value)) throw wrong(field);
  const read: Record<string, unknown> = {};
  for (const name of Object.keys(readers)) {
    const reader = readers[name as keyof T] as FieldReader<unknown>;
    const found = reader(Object.hasOwn(value, name) ? value[name] : undefined, name);
    if (found !== undefined) read[name] = found;
  }
  return read as T;
}

export function wrong(field: string): UnreadableCommand {
  return new UnreadableCommand(`field ${field} is not of its form`);
}

export function oneOf<const T>(...values: readonly T[]): FieldReader<T> {
  return (value, field) => {
    const found = values.find((allowed) => allowed === value);
    if (found === undefined) throw wrong(field);
    return found;
  };
}

export function orNull<T>(read: FieldReader<T>): FieldReader<T | null> {
  return (value, field) => (value === null ? null : read(value, field));
}

export function optional<T>(read: FieldReader<T>): FieldReader<T | undefined> {
  return (value, field) => (value === undefined ? undefined : read(value, field));
}

export function listOf<T>(read: FieldReader<T>, itemsMax: number): FieldReader<readonly T[]> {
  return (value, field) => {
    if (!Array.isArray(value) || value.length > itemsMax) throw wrong(field);
    return value.map((item) => read(item, field));
  };
}

/** Makes a reader from a check that throws LedgerError, such as those of src/domain/values/fields.ts. */
export function checked<T>(check: (field: string, value: unknown) => T): FieldReader<T> {
  return (value, field) => {
    try {
      return check(field, value);
    } catch (cause) {
      if (cause instanceof LedgerError) throw new UnreadableCommand(cause.message, { cause });
      throw cause;
    }
  };
}

/** Reads texts that have the form. */
export function textOfForm(hasForm: (text: string) => boolean): FieldReader<string> {
  return (value, field) => {
    if (typeof value !== 'string' || !hasForm(value)) throw wrong(field);
    return value;
  };
}

export const uuidField = textOfForm(isUuid);

export const flagField: FieldReader<boolean> = (value, field) => {
  if (typeof value !== 'boolean') throw wrong(field);
  return value;
};

export const countField: FieldReader<number> = (value, field) => {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw wrong(field);
  return value as number;
};

/** Names that nodes create: ids and fingerprints of command keys, and ids of lanes. */
export const nameField = textOfForm((text) => /^[\x20-\x7e]{1,128}$/.test(text));

/** An ISO time with three decimals, the only form that sorts as text. */
export const timeField = textOfForm((text) => {
  const timeMs = parseRfc3339(text);
  return timeMs !== null && isoTime(timeMs) === text;
});

/** The text of a JSON object in canonical form, no longer than a request body. */
export const objectTextField: FieldReader<string> = (value, field) => canonicalObject(value, field).canonical;

export function canonicalObject(value: unknown, field: string): JsonObject {
  if (typeof value !== 'string' || value.length > limits.requestBodyMaxBytes) throw wrong(field);
  const node = checked(() => parseJson(value))(value, field);
  if (node.kind !== 'object' || node.canonical !== value) throw wrong(field);
  return node;
}
