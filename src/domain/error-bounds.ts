import type { ErrorDetails } from './errors.ts';

interface BoundedError {
  readonly message: string;
  readonly details: ErrorDetails;
  readonly cut: readonly string[];
}

/** For safety: the service itself chooses the names of details, and there are few. */
const cutMaxChars = 128;

export function namesOf(cut: readonly string[]): string {
  return cut.join(',').slice(0, cutMaxChars);
}

interface ErrorBounds {
  readonly messageMaxBytes: number;
  readonly detailsMaxBytes: number;
}

/** For headers, trailers, and outcomes on a stream: many clients and proxies refuse or end at 8 KiB. */
export const trailerBounds: ErrorBounds = { messageMaxBytes: 512, detailsMaxBytes: 3 * 1024 };
/** For bodies: a request's content may come back in the details. */
export const bodyBounds: ErrorBounds = { messageMaxBytes: 4 * 1024, detailsMaxBytes: 1024 * 1024 };

/**
 * Shortens an error to what an answer may hold. Of the details the short ones come first: a text that has no room keeps
 * its beginning, any other value is left out. `cut` names what was shortened or left out.
 */
export function boundError(message: string, details: ErrorDetails, bounds: ErrorBounds): BoundedError {
  const shown = cutText(message.toWellFormed(), bounds.messageMaxBytes, Buffer.byteLength);
  const cut = shown === message ? [] : ['message'];
  if (jsonBytes(details) <= bounds.detailsMaxBytes) return { message: shown, details, cut };
  const kept = new Map<string, ErrorDetails[string]>();
  let left = bounds.detailsMaxBytes;
  const byLength = Object.entries(details).sort(([, one], [, other]) => jsonBytes(one) - jsonBytes(other));
  for (const [name, value] of byLength) {
    const room = left - jsonBytes(name) - 2;
    const shortened = shorten(value, room);
    if (shortened !== undefined) {
      kept.set(name, shortened);
      left = room - jsonBytes(shortened);
    }
    if (shortened !== value) cut.push(name);
  }
  const names = Object.keys(details).filter((name) => kept.has(name));
  return { message: shown, details: Object.fromEntries(names.map((name) => [name, kept.get(name)])), cut };
}

function shorten(value: ErrorDetails[string], room: number): ErrorDetails[string] {
  if (jsonBytes(value) <= room) return value;
  return typeof value === 'string' && room > 64 ? cutText(value.toWellFormed(), room, jsonBytes) : undefined;
}

function cutText(text: string, maxBytes: number, bytesOf: (text: string) => number): string {
  if (bytesOf(text) <= maxBytes) return text;
  let length = Math.min(text.length, maxBytes);
  let shown = '';
  do {
    shown = `${text.slice(0, length).replace(/[\ud800-\udbff]$/, '')}…`;
    length = Math.floor(length * 0.9);
  } while (bytesOf(shown) > maxBytes);
  return shown;
}

/** 0 for a value that JSON leaves out. */
function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '');
}
