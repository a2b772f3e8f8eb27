import type { KeyObject } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { LedgerError } from '../../domain/errors.ts';
import {
  digestBytes,
  itemBytes,
  signatureBytes,
  type VerifyingBatch,
  type VerifyingResults,
  writeItem,
} from './verifying-batch.ts';

/** The main thread cannot keep more verifying threads busy. Each takes some 8 MiB. */
const threadsMax = 4;
/** One core is left to the main thread. */
const threadCount = Math.max(1, Math.min(availableParallelism() - 1, threadsMax));
/** Signatures of a message. A message costs about 10 µs of the main thread; 16 signatures take 2 ms to verify. */
const batchItemsMax = 16;
/** Messages queued at a thread: 8 ms of work, so that it does not run dry during a turn of a busy event loop. */
const batchesOpenMax = 8;
/** Signatures of calls, and likewise of reads, that may wait: about a second of work for one thread. */
export const defaultWaitingMax = 10_000;
/** Messages with signatures of reads queued at a thread. A call's signature waits behind these. */
const readBatchesOpenMax = 2;
/**
 * Keys that a thread keeps, some 1 KiB each. A thread that has as many is given no more work, and once it has answered
 * what it has, a new one without keys takes its place.
 */
const defaultKeysMax = 10_000;
const heapLimits = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 };

const threadScript = new URL(
  import.meta.url.endsWith('.ts') ? './verifying-thread.ts' : './verifying-thread.js',
  import.meta.url,
);

/**
 * Verifies an Ed25519 signature (64 bytes) of a 32-byte digest off the main thread. Resolves with false if it is not
 * valid. Rejects if it could not be checked; with `overloaded` if too many are waiting.
 */
export type VerifySignature = (digest: Uint8Array, signature: Uint8Array, key: KeyObject) => Promise<boolean>;

interface Waiting {
  readonly digest: Uint8Array;
  readonly signature: Uint8Array;
  readonly key: KeyObject;
  readonly resolve: (valid: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** A thread with the batches that it has not answered, oldest first. */
interface Thread {
  readonly worker: Worker;
  readonly open: (readonly Waiting[])[];
  /** The keys that the thread has, with their numbers. */
  readonly keys: WeakMap<KeyObject, number>;
  keyCount: number;
}

interface ThreadsOptions {
  /** Signatures that may wait (SIGNATURE_QUEUE_MAX). */
  readonly waitingMax?: number;
  /** For tests, as the script. */
  readonly count?: number;
  readonly keysMax?: number;
  readonly script?: URL;
}

/**
 * Threads that verify signatures. The signatures of one turn of the event loop are sent in batches, so that each costs
 * the main thread about 2 µs. In libuv's thread pool each would cost 10 to 50 µs, and LMDB's writer would wait.
 *
 * Invariant: a signature is in `#waiting`, in `#waitingReads` or in one batch of one thread, and is settled once. If a
 * thread fails, its batches are rejected and it is replaced.
 */
export class VerifyingThreads {
  readonly #script: URL;
  readonly #waitingMax: number;
  readonly #keysMax: number;
  readonly #threads: Thread[] = [];
  readonly #waiting: Waiting[] = [];
  /** Signatures of reads, sent only while no others wait. */
  readonly #waitingReads: Waiting[] = [];
  #scheduled = false;
  #closed = false;

  constructor({
    waitingMax = defaultWaitingMax,
    count = threadCount,
    keysMax = defaultKeysMax,
    script = threadScript,
  }: ThreadsOptions = {}) {
    this.#script = script;
    this.#waitingMax = waitingMax;
    this.#keysMax = keysMax;
    for (let at = 0; at < count; at++) this.#threads.push(this.#start());
  }

  /** Signatures that no thread has yet. */
  get waiting(): number {
    return this.#waiting.length + this.#waitingReads.length;
  }

  /**
   * See VerifySignature. Rejects with TypeError for another kind of key, or a digest or signature of a wrong length,
   * and with `unavailable` while the node stops.
   */
  readonly verify: VerifySignature = (digest, signature, key) => this.#ask(this.#waiting, digest, signature, key);

  /** The same for stored events that are read. They delay the signatures of calls by some milliseconds at most. */
  readonly verifyRead: VerifySignature = (digest, signature, key) =>
    this.#ask(this.#waitingReads, digest, signature, key);

  #ask(waiting: Waiting[], digest: Uint8Array, signature: Uint8Array, key: KeyObject): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (digest.length !== digestBytes || signature.length !== signatureBytes) {
        throw new TypeError(`a digest has ${digestBytes} bytes and a signature ${signatureBytes}`);
      }
      if (key.asymmetricKeyType !== 'ed25519') throw new TypeError('an Ed25519 key is needed');
      if (this.#closed) throw stopping();
      if (waiting.length >= this.#waitingMax) {
        throw new LedgerError(
          'overloaded',
          'More signatures wait than can be verified; nothing was written, retry in a moment.',
          { bound: 'SIGNATURE_QUEUE_MAX' },
        );
      }
      waiting.push({ digest, signature, key, resolve, reject });
      if (this.#scheduled) return;
      this.#scheduled = true;
      setImmediate(() => {
        this.#scheduled = false;
        this.#send();
      });
    });
  }

  /** Sends waiting signatures to the threads with the fewest batches, in even parts. */
  #send(): void {
    this.#handOut(this.#waiting, batchesOpenMax);
    if (this.#waiting.length === 0) this.#handOut(this.#waitingReads, readBatchesOpenMax);
  }

  #handOut(waiting: Waiting[], openMax: number): void {
    while (waiting.length > 0) {
      const thread = this.#idlest();
      if (thread === null || thread.open.length >= openMax) return;
      const share = Math.ceil(waiting.length / this.#threads.length);
      this.#give(thread, waiting.splice(0, Math.min(share, batchItemsMax)));
    }
  }

  /** null: all threads have as many keys as they may have, and will be replaced. */
  #idlest(): Thread | null {
    let idlest: Thread | null = null;
    for (const thread of this.#threads) {
      const isFull = thread.keyCount >= this.#keysMax;
      if (!isFull && (idlest === null || thread.open.length < idlest.open.length)) idlest = thread;
    }
    return idlest;
  }

  #give(thread: Thread, batch: readonly Waiting[]): void {
    const items = new Uint8Array(batch.length * itemBytes);
    const keys: [number, string][] = [];
    for (const [at, { key, digest, signature }] of batch.entries()) {
      let keyNumber = thread.keys.get(key);
      if (keyNumber === undefined) {
        keyNumber = thread.keyCount++;
        thread.keys.set(key, keyNumber);
        keys.push([keyNumber, key.export({ format: 'jwk' }).x ?? '']);
      }
      writeItem(items, at, { keyNumber, digest, signature });
    }
    // A thread with work keeps the process alive.
    if (thread.open.length === 0) thread.worker.ref();
    thread.open.push(batch);
    thread.worker.postMessage({ items, keys } satisfies VerifyingBatch, [items.buffer]);
  }

  #start(): Thread {
    const worker = new Worker(this.#script, { resourceLimits: heapLimits, execArgv: [], stdout: false, stderr: false });
    const thread: Thread = { worker, open: [], keys: new WeakMap(), keyCount: 0 };
    worker.on('message', (results: VerifyingResults) => {
      const batch = thread.open.shift() ?? [];
      for (const [at, { resolve }] of batch.entries()) resolve(results[at] === 1);
      if (thread.open.length === 0) worker.unref();
      if (thread.keyCount >= this.#keysMax && thread.open.length === 0) this.#replace(thread);
      this.#send();
    });
    worker.on('error', (error) => this.#fail(thread, error));
    worker.on('exit', () => this.#fail(thread, new Error('a verifying thread ended')));
    worker.unref();
    return thread;
  }

  #fail(thread: Thread, error: unknown): void {
    for (const batch of thread.open.splice(0))
      for (const { reject } of batch) reject(this.#closed ? stopping() : error);
    if (!this.#closed) this.#replace(thread);
  }

  #replace(thread: Thread): void {
    const at = this.#threads.indexOf(thread);
    if (at < 0) return;
    this.#threads[at] = this.#start();
    void thread.worker.terminate();
    this.#send();
  }

  /** Refuses all waiting signatures, and those that a thread is working on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const { reject } of [...this.#waiting.splice(0), ...this.#waitingReads.splice(0)]) reject(stopping());
    await Promise.all(this.#threads.map(({ worker }) => worker.terminate()));
  }
}

function stopping(): LedgerError {
  return new LedgerError('unavailable', 'This node is stopping; nothing was written, retry.');
}
