import { createCipheriv, createDecipheriv, createHash, hkdfSync, timingSafeEqual } from 'node:crypto';

/** What both sides of a stream send in plain text before they prove that they know the secret. */
interface Greeting {
  readonly clientId: string;
  readonly serverId: string;
  /** 32 random bytes of each side, so that no two sessions have the same keys. */
  readonly clientNonce: Uint8Array;
  readonly serverNonce: Uint8Array;
}

export const nonceBytes = 32;
const protocol = 'ledger-trust peers 1';
const keyBytes = 32;
const ivBytes = 12;
const tagBytes = 16;
/** The counter in a nonce has 48 bits. Nonces are never random, so no other bound on the frames of a key applies. */
const framesMax = 2 ** 48;

/** A frame whose seal is wrong: the frame was changed on its way or replayed, or a frame before it is missing. */
class ForgedFrame extends Error {
  constructor() {
    super('a frame of another node does not have its seal');
    this.name = 'ForgedFrame';
  }
}

/** Seals or opens the frames of one direction of one stream: AES-256-GCM, with the frame counter as nonce. */
class Direction {
  readonly #key: Uint8Array;
  readonly #iv = Buffer.alloc(ivBytes);
  #frames = 0;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  #nextIv(): Buffer {
    if (this.#frames >= framesMax) throw new ForgedFrame();
    this.#iv.writeUIntBE(this.#frames++, ivBytes - 6, 6);
    return this.#iv;
  }

  seal(frame: Uint8Array): Buffer {
    const cipher = createCipheriv('aes-256-gcm', this.#key, this.#nextIv(), { authTagLength: tagBytes });
    const sealed = cipher.update(frame);
    cipher.final();
    return Buffer.concat([cipher.getAuthTag(), sealed]);
  }

  open(sealed: Buffer): Buffer {
    if (sealed.length < tagBytes) throw new ForgedFrame();
    const decipher = createDecipheriv('aes-256-gcm', this.#key, this.#nextIv(), { authTagLength: tagBytes });
    decipher.setAuthTag(sealed.subarray(0, tagBytes));
    const frame = decipher.update(sealed.subarray(tagBytes));
    try {
      decipher.final();
    } catch {
      throw new ForgedFrame();
    }
    return frame;
  }
}

/**
 * The keys of one stream between two nodes that know the same secret. They are derived from the secret, fresh random
 * bytes of both sides and both node ids, so a frame is valid in no other stream, and in one direction only.
 */
export class PeerSession {
  /** Proves to the client that the server knows the secret. The client proves the same with its first frame. */
  readonly serverProof: Buffer;
  readonly fromClient: Direction;
  readonly fromServer: Direction;

  constructor(secret: string, greeting: Greeting) {
    const key = keysOf(secret, greeting);
    this.serverProof = Buffer.from(key('server proof'));
    this.fromClient = new Direction(key('client to server'));
    this.fromServer = new Direction(key('server to client'));
  }

  isProvedBy(proof: Uint8Array): boolean {
    return proof.length === this.serverProof.length && timingSafeEqual(proof, this.serverProof);
  }
}

function keysOf(secret: string, { clientId, serverId, clientNonce, serverNonce }: Greeting) {
  const salt = createHash('sha256');
  for (const part of [protocol, clientId, serverId, clientNonce, serverNonce]) {
    const bytes = typeof part === 'string' ? Buffer.from(part, 'utf8') : part;
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    salt.update(length).update(bytes);
  }
  const transcript = salt.digest();
  return (label: string) => new Uint8Array(hkdfSync('sha256', secret, transcript, label, keyBytes));
}
