import { describe, expect, test } from 'vitest';
import {
  formatNote,
  hasBytesAfterNote,
  NOTE_CHARS_MAX,
  NOTE_SIGNATURES_MAX,
  parseNote,
} from '../../../../src/domain/log/note.ts';
import { logVectors } from '../../../support/log-vectors.ts';

const notes = [logVectors.ledger, ...logVectors.masters].flatMap(({ checkpoints }) => checkpoints);
const signature = { keyName: 'example.com/log', keyId: '0a0b0c0d', signature: Buffer.alloc(64, 9) };
const line = '— a AAECAwQ=\n';

test.each(notes)('a note of the vectors is read and written again: $text', ({ note, text }) => {
  const parsed = parseNote(note);
  expect(parsed?.text).toBe(text);
  expect(parsed?.signatures).toHaveLength(1);
  const [first] = parsed?.signatures ?? [];
  expect(first?.signature).toHaveLength(64);
  expect(first && formatNote(text, first)).toBe(note);
});

test('the example of c2sp.org/signed-note is read, whose text holds an empty line', () => {
  const text = 'Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned è subito sera.\n';
  const encoded = 'NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=';
  const parsed = parseNote(`${text}\n— quasimodo.example/salvatore ${encoded}\n`);
  expect(parsed?.text).toBe(text);
  expect(parsed?.signatures[0]).toMatchObject({ keyName: 'quasimodo.example/salvatore', keyId: '367ba04b' });
});

test('a note keeps the signatures of all keys, whatever their length', () => {
  const long = Buffer.alloc(5_000, 1);
  const note = `${formatNote('t\n', signature)}${formatNote('', { ...signature, signature: long }).slice(1)}${line}`;
  expect(parseNote(note)).toEqual({
    text: 't\n',
    signatures: [
      signature,
      { ...signature, signature: long },
      { keyName: 'a', keyId: '00010203', signature: Buffer.of(4) },
    ],
  });
});

test.each([
  ['a line feed', '\n', true],
  ['a text', 'more', true],
  ['another signature', line, false],
  ['nothing', '', false],
])('whether bytes follow a note is told: %s', (_what, after, follows) => {
  expect(hasBytesAfterNote(formatNote('t\n', signature) + after)).toBe(follows);
});

test('a text that is no note has nothing behind a note', () => {
  for (const text of ['', 'text', 'text\n\n', '\n— \n\n', `t\n${line}\n`, formatNote('t\n', signature).slice(0, -1)])
    expect([text, hasBytesAfterNote(text)]).toEqual([text, false]);
});

test('a note has at most 100 signatures', () => {
  expect(NOTE_SIGNATURES_MAX).toBeGreaterThanOrEqual(16);
  expect(parseNote(`t\n\n${line.repeat(NOTE_SIGNATURES_MAX)}`)?.signatures).toHaveLength(NOTE_SIGNATURES_MAX);
  expect(parseNote(`t\n\n${line.repeat(NOTE_SIGNATURES_MAX + 1)}`)).toBeNull();
});

test('a note has room for 16 signatures of 5 kB and a bounded length', () => {
  const large = formatNote('', { ...signature, signature: Buffer.alloc(5_000) }).slice(1);
  expect(parseNote(`t\n\n${large.repeat(16)}`)?.signatures).toHaveLength(16);
  const end = `\n\n${line}`;
  expect(parseNote('t'.repeat(NOTE_CHARS_MAX - end.length) + end)).not.toBeNull();
  expect(parseNote(`t${'t'.repeat(NOTE_CHARS_MAX - end.length)}${end}`)).toBeNull();
});

describe('a note is refused', () => {
  test.each([
    ['that is empty', ''],
    ['without a signature', 't\n\n'],
    ['without an empty line', `t\n${line}`],
    ['without text', `\n${line}`],
    ['without a line feed at its end', `t\n\n${line.slice(0, -1)}`],
    ['with an empty line at its end', `t\n\n${line}\n`],
    ['with a hyphen for the dash', `t\n\n${line.replace('—', '-')}`],
    ['with two spaces', `t\n\n${line.replace(' ', '  ')}`],
    ['with a space at the end of a line', `t\n\n${line.replace('\n', ' \n')}`],
    ['with an empty key name', `t\n\n${line.replace('a', '')}`],
    ['with a plus sign in a key name', `t\n\n${line.replace('a', 'a+b')}`],
    ['with a no-break space in a key name', `t\n\n${line.replace('a', 'a\u00a0b')}`],
    ['with a next-line character in a key name', `t\n\n${line.replace('a', 'a\u0085b')}`],
    ['with no signature behind the key id', 't\n\n— a AAECAw==\n'],
    ['with base64 without padding', 't\n\n— a AAECAwQ\n'],
    ['with stray bits in its base64', 't\n\n— a AAECAwR=\n'],
    ['with base64url', 't\n\n— a AAEC_wQ=\n'],
    ['with a carriage return', `t\r\n\n${line}`],
    ['with a tab in its text', `\tt\n\n${line}`],
    ['with a NUL in its text', `t\0\n\n${line}`],
    ['with half a surrogate pair', `\ud800\n\n${line}`],
    ['with one malformed line among good ones', `t\n\n${line}x\n${line}`],
  ])('%s', (_, note) => {
    expect(parseNote(`t\n\n${line}`)).not.toBeNull();
    expect(parseNote(note)).toBeNull();
  });
});
