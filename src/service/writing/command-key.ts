import { LedgerError } from '../../domain/errors.ts';
import type { CommandKey } from '../../domain/event/event.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';

/**
 * How a retry of a call with an Idempotency-Key is recognized: the id is made of the caller and the key, the
 * fingerprint of the call's content. Both are the same with every transport and on every node.
 */

const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** Returns the key as given. Throws `invalid_argument` unless it has 1 to 255 printable ASCII characters. */
export function checkIdempotencyKey(key: string): string {
  if (IDEMPOTENCY_KEY.test(key)) return key;
  throw new LedgerError('invalid_argument', 'The Idempotency-Key must be 1 to 255 printable ASCII characters.', {
    field: 'Idempotency-Key',
  });
}

/** The id of a command key, hex. The length prefix keeps two different pairs from giving the same text. */
export function commandId(actorId: string, key: string): string {
  return sha256Hex(`svc-command-v1\0${actorId.length}\0${actorId}${key}`);
}

/** The fingerprint of a call, hex: of its REST method, its path with query, and its body. */
export function callFingerprint(verb: string, pathWithQuery: string, body: string | Uint8Array): string {
  const head = `${verb} ${pathWithQuery}\n`;
  return sha256Hex(typeof body === 'string' ? head + body : Buffer.concat([Buffer.from(head, 'utf8'), body]));
}

/**
 * The same for POST /traceledger/master/{uuid}/events, from its parts. `payload` is canonical JSON. Events of a stream
 * have this fingerprint too, so that a retry may use another transport.
 */
export function appendFingerprint(masterId: string, eventType: string, payload: string, query = ''): string {
  const path = `/v1/traceledger/master/${masterId}/events${query}`;
  return callFingerprint('POST', path, `{"event_type":${JSON.stringify(eventType)},"payload":${payload}}`);
}

/** The command key of a call that writes to an existing ledger. */
export function commandKey(actorId: string, key: string, fingerprint: string): CommandKey {
  return { id: commandId(actorId, key), fingerprint, permanent: false };
}
