import { sign } from 'node:crypto';
import type { ClientOptions } from '../../src/client/index.ts';
import { encodeBase64 } from '../../src/domain/keys/base64.ts';
import { endorsementDigest } from '../../src/domain/log/endorsement.ts';
import { keyIdOf } from '../../src/domain/log/log-key.ts';
import { formatNote } from '../../src/domain/log/note.ts';
import { formatProofFile } from '../../src/domain/log/proof-file.ts';
import { subtreeHash } from '../../src/domain/log/subtree-hash.ts';
import { leafHash } from '../../src/domain/log/tree.ts';
import { consistencyPath, inclusionPath } from '../../src/domain/log/tree-proof.ts';
import { against, answer } from './answering-service.ts';
import { events, ledgerId } from './export-of-vectors.ts';
import { MemoryHashes } from './log-hashes.ts';
import { privateKeyOf } from './log-keys.ts';
import { hexOf, logVectors, ofHex } from './log-vectors.ts';
import { vectors } from './vectors.ts';

/** A service that proves the ledger of the vectors and its masters, and lies as a test tells it. */

const serviceName = 'ledger.example/v1';
export const masterId = '0193a000-0000-7000-8000-0000000000aa';
export const ledgerOrigin = `${serviceName}/ledgers/${ledgerId}`;
export const masterOrigin = `${serviceName}/masters/${masterId}`;

export class SigningKey {
  readonly seedHex: string;
  readonly publicKey: Buffer;

  constructor(seedHex: string, publicKey: string) {
    this.seedHex = seedHex;
    this.publicKey = Buffer.from(publicKey, 'base64');
  }

  sign(message: Uint8Array): Buffer {
    return sign(null, message, privateKeyOf(this.seedHex));
  }
}

const { seed_hex, public_key_base64 } = logVectors.log_key;
export const logKey = new SigningKey(seed_hex, public_key_base64);
const keyOf = ({ seed_hex: seed, public_key_base64: publicKey }: { seed_hex: string; public_key_base64: string }) =>
  new SigningKey(seed, publicKey);
/** Any other key. */
export const otherKey = keyOf(vectors.keys.supplier);
const authorityKey = keyOf(vectors.keys.authority);

type Members = Record<string, unknown>;

/** What the service says. A test changes it between calls. */
export class Lies {
  serviceName = serviceName;
  /** The keys of the trust anchor, oldest first. The last one signs. */
  keys: readonly SigningKey[] = [logKey];
  /** Signs in place of the newest key. */
  signature: ((text: string) => { readonly publicKey: Uint8Array; readonly signature: Uint8Array }) | null = null;
  /** false: phase 1, where the authority endorses nothing. */
  hasAuthority = true;
  /** Whom the endorsements are by. */
  endorsedBy = authorityKey;
  /** The key of the authority in the trust anchor. */
  authority = authorityKey;
  /** How many events the newest checkpoint covers. */
  newest = 9;
  /** false: a proof of consistency is answered with an error. */
  showsConsistency = true;
  /** The index of an event in whose place another one is shown. null: none. */
  rewrittenAt: number | null = null;
  /** Changes the text that is signed, the note, the proof file, and each answer by the end of its path. */
  text = (text: string): string => text;
  note = (note: string): string => note;
  file = (file: string): string => file;
  answer = (_call: string, body: Members): Members => body;
  hashes = (hashes: readonly Uint8Array[]): readonly Uint8Array[] => hashes;
}

function recordsOf(folder: string, id: string, { rewrittenAt }: Lies): readonly Uint8Array[] {
  const own = events.filter((event) => folder === 'ledgers' || event.master_id === id);
  const records = own.map((event) => ofHex(folder === 'ledgers' ? event.hash : event.content_hash));
  return records.map((record, at) => (at === rewrittenAt ? ofHex('ff'.repeat(32)) : record));
}

/** A client of a service that lies as `lies` says, from the next call on. */
export async function provingService(options: Partial<ClientOptions> = {}) {
  const lies = new Lies();
  const service = await against((seen, response) => {
    const url = new URL(seen.url, 'http://x');
    const body = answerTo(url, lies);
    answer(response, body === null ? 404 : 200, body ?? { error: { code: 'not_found', message: url.pathname } });
  }, options);
  return { ...service, lies };
}

function answerTo(url: URL, lies: Lies): Members | null {
  if (url.pathname === '/.well-known/svc-authority' || url.pathname === '/v1/.well-known/svc-authority')
    return anchorOf(lies);
  const [, kind = '', id = '', call = ''] =
    /^\/v1\/(?:traceledger\/)?(ledgers|master)\/([^/]+)\/(?:proof\/)?(.+)$/.exec(url.pathname) ?? [];
  const given = (name: string) => (url.searchParams.has(name) ? Number(url.searchParams.get(name)) : null);
  if (call === 'events') {
    const offset = given('offset') ?? 0;
    const own = events.filter(({ master_id }) => master_id === id).slice(offset, offset + (given('limit') ?? 9));
    return lies.answer(call, { master_uuid: id, ledger_id: ledgerId, count: own.length, events: own, ...ofList });
  }
  const folder = kind === 'ledgers' ? 'ledgers' : 'masters';
  const log = new ShownLog(`${lies.serviceName}/${folder}/${id}`, recordsOf(folder, id, lies), lies);
  const size = given('size') ?? Math.min(lies.newest, log.size);
  switch (call) {
    case 'checkpoint':
      return lies.answer(call, log.checkpoint(size));
    case 'inclusion':
      return lies.answer(call, log.inclusion(given('seq') ?? 0, size));
    case 'consistency':
      if (!lies.showsConsistency) return null;
      return lies.answer(call, log.consistency(given('from') ?? 0, given('to') ?? size));
    default:
      return null;
  }
}

const ofList = { integrity: { verified: true, issues: [] }, next_cursor: null };

class ShownLog {
  readonly #origin: string;
  readonly #hashes: MemoryHashes;
  readonly #lies: Lies;
  readonly size: number;

  constructor(origin: string, records: readonly Uint8Array[], lies: Lies) {
    this.#origin = origin;
    this.#hashes = new MemoryHashes(records.map(leafHash));
    this.#lies = lies;
    this.size = records.length;
  }

  #hashOf = (from: number, to: number): Uint8Array => subtreeHash({ from, to }, this.#hashes.hashAt);

  note(size: number): string {
    const text = this.#lies.text(`${this.#origin}\n${size}\n${encodeBase64(this.#hashOf(0, size))}\n`);
    const signing = this.#lies.keys.at(-1) ?? logKey;
    const { publicKey, signature } = this.#lies.signature?.(text) ?? {
      publicKey: signing.publicKey,
      signature: signing.sign(Buffer.from(text)),
    };
    const keyName = text.slice(0, text.indexOf('\n'));
    return this.#lies.note(formatNote(text, { keyName, keyId: keyIdOf(keyName, publicKey), signature }));
  }

  checkpoint(size: number): Members {
    const checkpoint = this.note(size);
    return { origin: this.#origin, size, root_hash: checkpoint.split('\n')[2], checkpoint };
  }

  inclusion(index: number, size: number): Members {
    const hashes = this.#lies.hashes(inclusionPath(index, size).map(({ from, to }) => this.#hashOf(from, to)));
    const proof = this.#lies.file(formatProofFile({ index, hashes, checkpoint: this.note(size) }));
    return { origin: this.#origin, index, size, proof, prev_hash: events[index - 1]?.hash ?? '' };
  }

  consistency(from: number, to: number): Members {
    const path = consistencyPath(from, to).map((part) => this.#hashOf(part.from, part.to));
    const hashes = this.#lies.hashes(path).map(encodeBase64);
    return { origin: this.#origin, from, to, hashes, checkpoint_from: this.note(from), checkpoint_to: this.note(to) };
  }
}

function anchorOf({ serviceName: origin, keys, hasAuthority, endorsedBy, authority }: Lies): Members {
  const { publicKey } = authority;
  const listed = keys.map((key) => {
    const digest = endorsementDigest({ serviceName: origin, publicKey: key.publicKey });
    const sig = endorsedBy.sign(digest).toString('base64');
    return {
      public_key: key.publicKey.toString('base64'),
      valid_from: '2026-11-01T00:00:00.000Z',
      valid_to: null,
      endorsement: hasAuthority ? { kid: 'svc:authority#key-1', sig } : null,
    };
  });
  const shared = { algorithm: 'Ed25519', public_key: publicKey.toString('base64'), fingerprint: hexOf(publicKey) };
  const validity = { valid_from: '2026-11-01T00:00:00.000Z', valid_to: null };
  return {
    id: 'svc:authority',
    ...shared,
    kid_namespace: 'svc:authority#key-<seq>',
    phase: hasAuthority ? '2' : '1',
    keys: [{ kid: 'svc:authority#key-1', ...shared, ...validity }],
    log: { origin, keys: listed, previous: [] },
  };
}
