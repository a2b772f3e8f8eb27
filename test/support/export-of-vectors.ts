import { eventToJson } from '../../src/client/call/answer-encoding.ts';
import { digestOf } from '../../src/client/signing/signing.ts';
import { canonicalJson } from '../../src/domain/json/canonical.ts';
import { ed25519Key, signDigest } from '../../src/domain/keys/key-object.ts';
import { logVectors, type VectorLog } from './log-vectors.ts';
import { at, changed, resealed } from './vector-chain.ts';
import { vectors } from './vectors.ts';

export const ledgerId = '0193a000-0000-7000-8000-000000000001';
const actorId = '0193a000-0000-7000-8000-00000000000a';

/** The chain of the vectors as REST shows events. */
export const events = vectors.chain.map(({ content, ...event }) => {
  const { master, actor_sig_payload_hash: _, payload_hash: __, ...fields } = content;
  return {
    ...fields,
    master_id: master?.id ?? null,
    master_seq: master?.seq ?? null,
    payload: event.payload,
    actor_sig_payload: event.actor_sig_payload,
    hash: event.hash,
    content_hash: event.content_hash,
    authority_sig: event.authority_sig ?? null,
    authority_key_id: event.authority_key_id ?? null,
  };
});
/** The same ledger with one more member in a payload, signed and sealed by those who signed and sealed the rest. */
export function eventsWith(added: Readonly<Record<string, string>>): unknown[] {
  const { eventType, payload: signed } = at(4);
  const payload = { ...signed, ...added };
  const signer = ed25519Key(Buffer.from(vectors.keys.supplier.seed_hex, 'hex'));
  const actorSig = signDigest(digestOf({ eventType, ledgerId, canonical: canonicalJson(payload) }), signer);
  return resealed(changed(4, { payload, actorSig }), 4).map((event) => JSON.parse(eventToJson(event)));
}
export const actor = {
  id: `svc:actor:${actorId}`,
  actor_id: actorId,
  role: 'PARTICIPANT',
  status: 'ACTIVE',
  keys: [
    {
      kid: vectors.kid,
      algorithm: 'Ed25519',
      public_key: vectors.keys.supplier.public_key_base64,
      status: 'ACTIVE',
      preferred_signing: true,
      valid_from: '2026-11-21T02:06:39.000Z',
      created_at: '2026-11-21T02:06:39.000Z',
    },
  ],
  preferred_signing: vectors.kid,
  trust_graph: null,
  authority_attestations: [],
  created_at: '2026-11-21T02:06:39.000Z',
};
const authorityKey = {
  kid: 'svc:authority#key-1',
  algorithm: 'Ed25519',
  public_key: vectors.keys.authority.public_key_base64,
  fingerprint: '00',
  valid_from: '2026-11-01T00:00:00.000Z',
  valid_to: null,
};
/** The log key of the vectors, which the authority has endorsed. */
const logKey = {
  public_key: logVectors.log_key.public_key_base64,
  valid_from: '2026-11-01T00:00:00.000Z',
  valid_to: null,
  endorsement: { kid: 'svc:authority#key-1', sig: logVectors.endorsement.sig },
};
export const authority = {
  id: 'svc:authority',
  algorithm: 'Ed25519',
  public_key: authorityKey.public_key,
  fingerprint: '00',
  kid_namespace: 'svc:authority#key-<seq>',
  phase: '2',
  keys: [authorityKey],
  log: { origin: 'ledger.example/v1', keys: [logKey], previous: [] },
};
/** A saved answer of GET …/events. */
export const answer = { ledger_id: ledgerId, count: events.length, integrity: { verified: true, issues: [] }, events };
const ofMaster = events.filter(({ master_id }) => master_id === '0193a000-0000-7000-8000-0000000000aa');
/** A saved answer of GET /traceledger/master/…/events. */
export const listOfMaster = { master_uuid: ofMaster[0]?.master_id, ledger_id: ledgerId, events: ofMaster };

/** The note over the first events of a log of the vectors: of the ledger, if left out. */
export function noteOf(size: number, log: Pick<VectorLog, 'checkpoints'> = logVectors.ledger): string {
  const note = log.checkpoints.find((checkpoint) => checkpoint.size === size)?.note;
  if (note === undefined) throw new Error(`the vectors have no checkpoint of size ${size}`);
  return note;
}

/** An export of it, which says at its end what it is; exports of before said nothing. */
export function exported(
  lines: readonly unknown[] = events,
  end: Readonly<Record<string, unknown>> = {},
  header: Readonly<Record<string, unknown>> = {},
  documents: { readonly actor: unknown; readonly authority: unknown; readonly checkpoint?: unknown } = {
    actor,
    authority,
  },
): string {
  return [
    { format: 'ledger-trust-export/2', ledger_id: ledgerId, exported_at: '2026-11-21T03:00:00.000Z', ...header },
    ...lines.map((event) => ({ event })),
    { actor: documents.actor },
    { authority: documents.authority },
    ...(documents.checkpoint === undefined ? [] : [{ checkpoint: documents.checkpoint }]),
    { end: { count: lines.length, ...end } },
  ]
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
}
