import { createHash } from 'node:crypto';
import { isUuid } from './uuid-form.ts';

/** UUIDs (RFC 9562), always in lower case. Upper case is refused, not converted. */

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const UUID_BYTES = 16;
/** Version and variant overwrite 6 of these 80 bits. */
export const UUID_V7_RANDOM_BYTES = 10;
const TIME_BYTES = 6;
/** ms since 1970. */
export const UUID_V7_TIME_MAX = 2 ** 48 - 1;

const hexDigits = Buffer.from('0123456789abcdef', 'latin1');
/** Reading the text out of one buffer makes one string object; joining its parts would make fourteen. */
const dashed = Buffer.alloc(36, '-');

/** RFC 9562, section 5.7, of ms since 1970 and 10 random bytes. RangeError for anything else. */
export function uuidV7(timeMs: number, random: Uint8Array): string {
  if (random.length !== UUID_V7_RANDOM_BYTES)
    throw new RangeError(`A UUIDv7 takes ${UUID_V7_RANDOM_BYTES} random bytes`);
  if (!Number.isInteger(timeMs) || timeMs < 0 || timeMs > UUID_V7_TIME_MAX)
    throw new RangeError(`No UUIDv7 time: ${timeMs}`);
  const bytes = Buffer.allocUnsafe(UUID_BYTES);
  bytes.writeUIntBE(timeMs, 0, TIME_BYTES);
  bytes.set(random, TIME_BYTES);
  return stamped(bytes, 0x70);
}

/** ms since 1970. null: any other UUID or text. */
export function uuidV7Time(id: string): number | null {
  if (!UUID_V7.test(id)) return null;
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** RFC 9562, section 5.5, of a name in UTF-8. The same pair gives the same id. */
export function uuidV5(namespace: string, name: string): string {
  const digest = createHash('sha1').update(uuidBytes(namespace)).update(name, 'utf8').digest();
  return stamped(digest.subarray(0, UUID_BYTES), 0x50);
}

/** RangeError if the text is not a UUID. */
export function uuidBytes(id: string): Buffer {
  if (!isUuid(id)) throw new RangeError(`No UUID: ${id}`);
  return Buffer.from(id.replaceAll('-', ''), 'hex');
}

/** RangeError for any other length than 16 bytes. */
export function uuidFromBytes(bytes: Uint8Array): string {
  if (bytes.length !== UUID_BYTES) throw new RangeError(`A UUID has ${UUID_BYTES} bytes, not ${bytes.length}`);
  let at = 0;
  for (let byte = 0; byte < UUID_BYTES; byte += 1) {
    if (byte === 4 || byte === 6 || byte === 8 || byte === 10) at += 1;
    const value = bytes[byte] ?? 0;
    dashed[at] = hexDigits[value >> 4] ?? 0;
    dashed[at + 1] = hexDigits[value & 0x0f] ?? 0;
    at += 2;
  }
  return dashed.toString('latin1');
}

function stamped(bytes: Buffer, version: number): string {
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | version;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return uuidFromBytes(bytes);
}
