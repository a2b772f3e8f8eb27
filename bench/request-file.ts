import { closeSync, openSync, readSync, writeSync } from 'node:fs';

/**
 * The requests of a run as they go over the wire, signed beforehand and kept in a file, so that the load generator
 * neither signs nor encodes while time is taken, and holds no more of them than it is about to send. All have the same
 * length; those of a signer (a signing key) lie one behind the other.
 */
export interface RequestFile {
  readonly path: string;
  readonly recordBytes: number;
  readonly signers: number;
  readonly recordsPerSigner: number;
}

const recordsAtOnce = 64;

/** Reads the records of one signer in their order. */
export class RequestReader {
  readonly #file: RequestFile;
  readonly #fd: number;
  readonly #signer: number;
  readonly #end: number;
  readonly #block: Buffer;
  #next: number;
  #blockStart = 0;
  #blockEnd = 0;

  /** From record `from`, inclusive, to record `to` of the signer. */
  constructor(file: RequestFile, signer: number, from: number, to: number) {
    this.#file = file;
    this.#fd = openSync(file.path, 'r');
    this.#signer = signer;
    this.#next = from;
    this.#end = to;
    this.#block = Buffer.allocUnsafe(file.recordBytes * recordsAtOnce);
  }

  get recordBytes(): number {
    return this.#file.recordBytes;
  }

  get left(): number {
    return this.#end - this.#next;
  }

  /** The next record, good until the block is read on: write it out or copy it at once. null: none is left. */
  next(): Buffer | null {
    if (this.#next >= this.#end) {
      if (this.#blockEnd >= 0) closeSync(this.#fd);
      this.#blockEnd = -1;
      return null;
    }
    if (this.#next >= this.#blockEnd) this.#read();
    const at = (this.#next - this.#blockStart) * this.#file.recordBytes;
    this.#next += 1;
    return this.#block.subarray(at, at + this.#file.recordBytes);
  }

  #read(): void {
    const { recordBytes, recordsPerSigner } = this.#file;
    const count = Math.min(recordsAtOnce, this.#end - this.#next);
    const place = (this.#signer * recordsPerSigner + this.#next) * recordBytes;
    const read = readSync(this.#fd, this.#block, 0, count * recordBytes, place);
    if (read !== count * recordBytes) throw new Error(`${this.#file.path} is shorter than it should be`);
    this.#blockStart = this.#next;
    this.#blockEnd = this.#next + count;
  }
}

/** Writes the records of one signer, in their order. TypeError for a record of another length. */
export class RequestWriter {
  readonly #fd: number;
  readonly #recordBytes: number;
  readonly #block: Buffer;
  #place: number;
  #filled = 0;

  constructor(file: RequestFile, signer: number) {
    this.#fd = openSync(file.path, 'r+');
    this.#recordBytes = file.recordBytes;
    this.#place = signer * file.recordsPerSigner * file.recordBytes;
    this.#block = Buffer.allocUnsafe(file.recordBytes * recordsAtOnce);
  }

  write(record: Buffer): void {
    if (record.length !== this.#recordBytes) {
      throw new TypeError(`a record has ${record.length} bytes, not ${this.#recordBytes}`);
    }
    this.#filled += record.copy(this.#block, this.#filled);
    if (this.#filled === this.#block.length) this.#flush();
  }

  close(): void {
    this.#flush();
    closeSync(this.#fd);
  }

  #flush(): void {
    this.#place += writeSync(this.#fd, this.#block, 0, this.#filled, this.#place);
    this.#filled = 0;
  }
}
