import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventToJson } from '../../src/client/call/answer-encoding.ts';
import type { Event, JsonObject } from '../../src/client/index.ts';
import { digestOf } from '../../src/client/signing/signing.ts';
import { canonicalJson } from '../../src/domain/json/canonical.ts';
import { ed25519Key, signDigest } from '../../src/domain/keys/key-object.ts';
import { actor, authority, exported } from '../support/export-of-vectors.ts';
import { suiteDir } from '../support/running-node.ts';
import { at, changed, resealed } from '../support/vector-chain.ts';
import { vectors } from '../support/vectors.ts';

/** A file to verify, and what it is verified under. */
export interface Case {
  readonly name: string;
  readonly file: string;
  readonly keys: readonly string[];
  readonly authority: string | null;
}

/** Makes cases of events and texts, under the keys of the vectors, in a folder of the suite that calls it. */
export function newCases() {
  const folder = suiteDir();
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const vectorKeys = {
    keys: [file('actor.json', JSON.stringify(actor))],
    authority: file('anchor.json', JSON.stringify(authority)),
  };
  let cases = 0;

  function ofEvents(name: string, events: readonly Event[], kind = 'ledger', checkpoint?: string, more = {}): Case {
    cases += 1;
    const lines = events.map((event) => JSON.parse(eventToJson(event)));
    const header = { ...(kind === 'master' ? { master_id: at(4).masterId } : {}), ...more };
    const documents = { actor, authority, ...(checkpoint === undefined ? {} : { checkpoint }) };
    const path = file(`case-${cases}.jsonl`, exported(lines, { kind }, header, documents));
    return { name, file: path, ...vectorKeys };
  }

  function ofText(name: string, text: string): Case {
    cases += 1;
    return { name, file: file(`case-${cases}.jsonl`, text), ...vectorKeys };
  }

  return { folder, file, ofEvents, ofText };
}

export const stranger = '0193a000-0000-7000-8000-0000000000ff';
export const actorLine = `${JSON.stringify({ actor })}\n`;

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
