import { crc32 } from 'node:zlib';
import { sha256Hex } from './hash.ts';

/**
 * API keys: `svc_sk_test_` or `svc_sk_live_<region>_`, then 32 random bytes in base62 (43 characters), then the CRC-32
 * of all that in base62 (6 characters). The checksum finds typos without a look-up.
 */

type Environment = 'sandbox' | 'production';
export type Region = 'in' | 'eu';

/** A sandbox key has no region. */
export interface ApiKeyParts {
  readonly environment: Environment;
  readonly region: Region | null;
}

export const API_KEY_RANDOM_BYTES = 32;

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 62^43 is the first power above 2^256, 62^6 the first above 2^32. */
const RANDOM_CHARS = 43;
const CHECKSUM_CHARS = 6;
/** Enough to recognise a key in a list, and far too little to guess it. */
const SHOWN_RANDOM_CHARS = 6;

const API_KEY = new RegExp(`^svc_sk_(?:test|live_(in|eu))_[0-9A-Za-z]{${RANDOM_CHARS}}[0-9A-Za-z]{${CHECKSUM_CHARS}}$`);

/** TypeError unless production keys, and they alone, have a region. RangeError for another number of bytes. */
export function formatApiKey(parts: ApiKeyParts & { readonly random: Uint8Array }): string {
  const { environment, region, random } = parts;
  if (random.length !== API_KEY_RANDOM_BYTES)
    throw new RangeError(`An API key takes ${API_KEY_RANDOM_BYTES} random bytes`);
  if ((environment === 'production') !== (region !== null)) throw new TypeError('Production keys alone have a region');
  const secret = base62(random);
  const body = `svc_sk_${region === null ? 'test' : `live_${region}`}_${secret}`;
  return body + checksum(body);
}

/** null: the text is not a key, or its checksum is wrong. */
export function parseApiKey(text: string): ApiKeyParts | null {
  const parts = API_KEY.exec(text);
  if (parts === null) return null;
  const body = text.slice(0, -CHECKSUM_CHARS);
  if (text.slice(-CHECKSUM_CHARS) !== checksum(body)) return null;
  const region = (parts[1] ?? null) as Region | null;
  return { environment: region === null ? 'sandbox' : 'production', region };
}

/** A key is stored as this. It is random enough to need no salt and no slow hash. */
export function apiKeyHash(text: string): string {
  return sha256Hex(text);
}

/** The part of a key that lists show, for example `svc_sk_test_4fKq2Z`. */
export function apiKeyPrefix(text: string): string {
  return text.slice(0, text.length - RANDOM_CHARS - CHECKSUM_CHARS + SHOWN_RANDOM_CHARS);
}

function checksum(body: string): string {
  let text = '';
  for (let rest = crc32(body); text.length < CHECKSUM_CHARS; rest = Math.floor(rest / 62))
    text = DIGITS.charAt(rest % 62) + text;
  return text;
}

function base62(random: Uint8Array): string {
  let text = '';
  let rest = BigInt(`0x${Buffer.from(random).toString('hex')}`);
  for (; text.length < RANDOM_CHARS; rest /= 62n) text = DIGITS.charAt(Number(rest % 62n)) + text;
  return text;
}
