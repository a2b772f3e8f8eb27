import { LedgerError } from '../../domain/errors.ts';
import type { CommandKey } from '../../domain/event.ts';
import { sha256Hex } from '../../domain/hash.ts';

/**
 * How a call with an Idempotency-Key is known again (decisions.md, section 1): the id says who asked under which key, the
 * fingerprint what was asked. Both are the same whichever transport and whichever node the retry comes through.
 */

const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** The key as given: 1 to 255 printable ASCII characters, else `invalid_argument`. */
export function checkIdempotencyKey(key: string): string {
  if (IDEMPOTENCY_KEY.test(key)) return key;
  throw new LedgerError('invalid_argument', 'The Idempotency-Key must be 1 to 255 printable ASCII characters.', {
    field: 'Idempotency-Key',
  });
}

/** Hex. The lengths in front keep two pairs from reading the same. */
export function commandId(actorId: string, key: string): string {
  return sha256Hex(`svc-command-v1\0${actorId.length}\0${actorId}${key}`);
}

/** Hex, of a call's REST method, its path with query, and what its body says. */
export function callFingerprint(verb: string, pathWithQuery: string, body: string | Uint8Array): string {
  const head = `${verb} ${pathWithQuery}\n`;
  return sha256Hex(typeof body === 'string' ? head + body : Buffer.concat([Buffer.from(head, 'utf8'), body]));
}

/**
 * The same for POST /traceledger/master/{uuid}/events, from its parts: `payload` is canonical JSON. Events of a stream
 * have this fingerprint too, so that a retry may come through another transport.
 */
export function appendFingerprint(masterId: string, eventType: string, payload: string, query = ''): string {
  const path = `/v1/traceledger/master/${masterId}/events${query}`;
  return callFingerprint('POST', path, `{"event_type":${JSON.stringify(eventType)},"payload":${payload}}`);
}

/** The mark of a call that writes to an existing ledger. */
export function commandMark(actorId: string, key: string, fingerprint: string): CommandKey {
  return { id: commandId(actorId, key), fingerprint, permanent: false };
}
