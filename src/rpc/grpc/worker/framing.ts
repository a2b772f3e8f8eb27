/** Flag byte and length (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). */
export const frameHeadBytes = 5;

/** Finds where messages begin and end in a request's bytes. */
export class MessageFraming {
  /** How many messages have ended. */
  messages = 0;
  /** Bytes of the unfinished message, its head included; 0 between two messages. */
  unfinishedBytes = 0;
  /** Whether a message had a flag byte other than 0 and 1. */
  hasUnknownFlag = false;
  hasCompressed = false;
  #headLeft = frameHeadBytes;
  #bodyLeft = 0;

  take(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#headLeft > 0) {
        this.#takeHeadByte(chunk[at] ?? 0);
        this.unfinishedBytes += 1;
        at += 1;
      } else {
        const taken = Math.min(this.#bodyLeft, chunk.length - at);
        this.#bodyLeft -= taken;
        this.unfinishedBytes += taken;
        at += taken;
      }
      if (this.#headLeft === 0 && this.#bodyLeft === 0) this.#end();
    }
  }

  #takeHeadByte(byte: number): void {
    if (this.#headLeft === frameHeadBytes) {
      if (byte === 1) this.hasCompressed = true;
      else if (byte !== 0) this.hasUnknownFlag = true;
    } else this.#bodyLeft = this.#bodyLeft * 256 + byte;
    this.#headLeft -= 1;
  }

  #end(): void {
    this.messages += 1;
    this.unfinishedBytes = 0;
    this.#headLeft = frameHeadBytes;
    this.#bodyLeft = 0;
  }
}
