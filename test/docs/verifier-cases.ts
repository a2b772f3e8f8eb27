import { eventToJson } from '../../src/client/call/answer-encoding.ts';
import type { Event, JsonObject } from '../../src/client/index.ts';
import { digestOf } from '../../src/client/signing/signing.ts';
import { canonicalJson } from '../../src/domain/json/canonical.ts';
import { ed25519Key, signDigest } from '../../src/domain/keys/key-object.ts';
import { actor, authority, exported } from '../support/export-of-vectors.ts';
import { at, chain, changed, resealed } from '../support/vector-chain.ts';
import { vectors } from '../support/vectors.ts';

/** An export and what it is verified with, each as the text of a file. */
export interface Case {
  readonly name: string;
  readonly text: string;
  readonly keys: readonly string[];
  readonly authority: string | null;
}

const vectorKeys = { keys: [JSON.stringify(actor)], authority: JSON.stringify(authority) };

export function ofText(name: string, text: string): Case {
  return { name, text, ...vectorKeys };
}

/** Events as REST shows them. */
export const linesOf = (events: readonly Event[]): unknown[] => events.map((event) => JSON.parse(eventToJson(event)));
export const exportOf = (events: readonly Event[]) => exported(linesOf(events), { kind: 'ledger' });

export function ofEvents(
  name: string,
  events: readonly Event[],
  kind = 'ledger',
  checkpoint?: string,
  more: Readonly<Record<string, unknown>> = {},
): Case {
  const header = { ...(kind === 'master' ? { master_id: at(4).masterId } : {}), ...more };
  const documents = { actor, authority, ...(checkpoint === undefined ? {} : { checkpoint }) };
  return ofText(name, exported(linesOf(events), { kind }, header, documents));
}

export const ofMaster = chain.filter(({ masterId }) => masterId === at(4).masterId);
export const stranger = '0193a000-0000-7000-8000-0000000000ff';
export const sealed = {
  actorSig: null,
  signingKeyId: null,
  actorSigPayload: null,
  authorityKeyId: 'svc:authority#key-1',
};

/** Events of the supplier as it signs them, in a ledger that fits. */
export function signedAgain(events: readonly Event[], from = 0): Event[] {
  const signer = ed25519Key(Buffer.from(vectors.keys.supplier.seed_hex, 'hex'));
  const signed = events.map((event, index) => {
    if (event.actorSig === null || index < from) return event;
    const input = { ...event, canonical: canonicalJson(event.actorSigPayload ?? event.payload) };
    return { ...event, actorSig: signDigest(digestOf(input), signer) };
  });
  return resealed(signed, from);
}

export const signedWith = (index: number, change: Partial<Event>) => signedAgain(changed(index, change), index);
export const appended = (added: JsonObject) => signedWith(4, { payload: { ...at(4).payload, ...added } });

/** The export of the whole ledger, and its line of an actor. */
export const text = exported(undefined, { kind: 'ledger' });
export const actorLine = `${JSON.stringify({ actor })}\n`;

/** An engagement whose last event has these members, of which the author signed all but `added`. */
export function engagement(sent: JsonObject, added: JsonObject = {}): Event[] {
  const genesis = { ledger_type: 'ENGAGEMENT', primary_actor_id: at(4).actorId, counterparty_actor_id: stranger };
  const names = { traceledger_master_uuid: at(2).masterId, business_ref: 'R', scope: 'JOB' };
  const request = { ledger_id: at(2).ledgerId, business_ref: 'R', scope: 'JOB' };
  const created = { payload: { ...request, ...names }, actorSigPayload: request };
  const signed = { ...names, ...sent };
  const actorSigPayload = Object.keys(added).length === 0 ? null : signed;
  return signedAgain([
    { ...at(0), payload: { ...genesis, purpose: 'REPAIR' } },
    { ...at(2), ...created, seq: 1 },
    { ...at(4), payload: { ...signed, ...added }, actorSigPayload, seq: 2 },
  ]);
}

export const linkOf = '0193a000-0000-7000-8000-0000000000cd';
