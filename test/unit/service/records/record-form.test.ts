import { expect, test } from 'vitest';
import { count, list, optional, orNull, parserOf, text, time } from '../../../../src/service/records/record-form.ts';

interface Stored {
  readonly name: string;
  readonly seq: number;
  readonly items: readonly unknown[];
  readonly endsAt: string | null;
  readonly note?: string;
}

const parse = parserOf<Stored>({ name: text, seq: count, items: list, endsAt: orNull(time), note: optional(text) });
const good = { name: 'a', seq: 0, items: [], endsAt: null };

test('a stored object is read with members that its form does not name', () => {
  for (const value of [good, { ...good, endsAt: '2026-01-01T00:00:00.000Z', added: 1 }])
    expect(parse(JSON.stringify(value))).toEqual(value);
});

test('a member that old values lack may be missing, and is checked where it is there', () => {
  expect(parse(JSON.stringify({ ...good, note: 'b' }))).toEqual({ ...good, note: 'b' });
  expect(parse(JSON.stringify(good))).toEqual(good);
  expect(() => parse(JSON.stringify({ ...good, note: null }))).toThrow(TypeError);
});

test.each([
  [{ ...good, name: undefined }, 'Member name is no text.'],
  [{ ...good, seq: -1 }, 'Member seq is no count.'],
  [{ ...good, seq: 1.5 }, 'Member seq is no count.'],
  [{ ...good, items: {} }, 'Member items is no list.'],
  [{ ...good, endsAt: 'soon' }, 'Member endsAt is no time or null.'],
  [[], 'This is no object.'],
  [null, 'This is no object.'],
])('the error of %j says what is wrong', (value, message) => {
  expect(() => parse(JSON.stringify(value))).toThrow(new TypeError(message));
});
