import { fromBinary } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import { StatusSchema } from '../../../src/gen/google/rpc/status_pb.ts';
import { statusDetails } from '../../../src/rpc/call/error-info.ts';
import { errorEnvelope } from '../../../src/rpc/http/error-envelope.ts';
import { infoIn } from '../../support/grpc-client.ts';

/** What a client reads of an error in trailers. */
function inTrailers(error: LedgerError) {
  const { bytes, message } = statusDetails(error, 'r-1');
  const status = fromBinary(StatusSchema, bytes);
  const info = infoIn(status);
  expect(status.message).toBe(message);
  return { bytes, message, info, details: JSON.parse(info?.metadata.details ?? '{}'), cut: info?.metadata.cut };
}

const wrong = (canonical: string) =>
  new LedgerError('invalid_signature', 'It does not verify.', {
    event_type: 'a.b',
    expected_canonical_json: canonical,
    signing_key_id: 'key-1',
  });

test('a short error is sent whole, and nothing is named as cut', () => {
  const { info } = inTrailers(wrong('{"a":1}'));
  expect(info?.metadata).toEqual({
    request_id: 'r-1',
    details: '{"event_type":"a.b","expected_canonical_json":"{\\"a\\":1}","signing_key_id":"key-1"}',
  });
});

test.each([
  ['letters', 'x'.repeat(300_000)],
  ['characters that JSON escapes', '"\n'.repeat(150_000)],
  ['characters of four bytes', '😀'.repeat(75_000)],
  ['halves of characters', '\ud83d'.repeat(75_000)],
])('a detail of 300,000 %s is cut to its beginning in trailers, which have 4 KiB, and is named', (_, text) => {
  const { bytes, details, cut } = inTrailers(wrong(text));
  expect(bytes.length).toBeLessThanOrEqual(4 * 1024);
  expect(details).toMatchObject({ event_type: 'a.b', signing_key_id: 'key-1' });
  expect(Object.keys(details)).toEqual(['event_type', 'expected_canonical_json', 'signing_key_id']);
  expect(details.expected_canonical_json.endsWith('…')).toBe(true);
  const shown = details.expected_canonical_json.slice(0, -1);
  expect(text.toWellFormed().startsWith(shown)).toBe(true);
  expect(shown.length).toBeGreaterThan(200);
  expect(cut).toBe('expected_canonical_json');
});

test('many long details, lists and a long message also have 4 KiB in trailers', () => {
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`field_${at}`, 'y'.repeat(at * 10)]));
  const list = Array.from({ length: 10_000 }, (_, at) => at);
  const { bytes, message, cut } = inTrailers(new LedgerError('invalid_argument', 'é'.repeat(9_000), { ...many, list }));
  expect(bytes.length).toBeLessThanOrEqual(4 * 1024);
  expect(Buffer.byteLength(message)).toBeLessThanOrEqual(512);
  expect(encodeURI(message).length).toBeLessThanOrEqual(3 * 512);
  expect(cut?.startsWith('message,')).toBe(true);
});

test('a body carries up to 1 MiB of details, and names what it cut', () => {
  const whole = JSON.parse(errorEnvelope(wrong('x'.repeat(500_000)), 'r-1'));
  expect(whole.error.details.expected_canonical_json).toHaveLength(500_000);
  expect(whole.error).not.toHaveProperty('cut');
  const text = errorEnvelope(wrong('"'.repeat(600_000)), 'r-1');
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1024 * 1024 + 4 * 1024);
  expect(JSON.parse(text).error.cut).toEqual(['expected_canonical_json']);
});
