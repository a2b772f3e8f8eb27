import { connect, type Socket } from 'node:net';
import {
  connectionPreface,
  flagAck,
  frame,
  frameHeadBytes,
  frameType,
  settingInitialWindow,
  streamIdAt,
} from './http2-frames.ts';

const maxWindow = 0x7fffffff;
const defaultWindow = 65_535;

/** What a connection tells of the frames that it got. `bytes` are good until the call returns. */
export interface Http2Receiver {
  data(streamId: number, bytes: Buffer, endStream: boolean): void;
  headers(streamId: number, endStream: boolean): void;
  reset(streamId: number): void;
  /** There is room again to send. */
  writable(): void;
}

/** An HTTP/2 connection that sends frames made beforehand, within the windows that the server opens. */
export class Http2Connection {
  readonly #socket: Socket;
  readonly #receiver: Http2Receiver;
  #rest: Buffer = Buffer.alloc(0);
  #connectionWindow = defaultWindow;
  #initialWindow = defaultWindow;
  readonly #streamWindows = new Map<number, number>();
  #nextStreamId = 1;

  constructor(port: number, receiver: Http2Receiver) {
    this.#receiver = receiver;
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('data', (chunk) => this.#take(chunk));
    this.#socket.on('error', (error) => {
      throw error;
    });
    const window = Buffer.alloc(6);
    window.writeUInt16BE(settingInitialWindow, 0);
    window.writeUInt32BE(maxWindow, 2);
    const more = Buffer.alloc(4);
    more.writeUInt32BE(maxWindow - defaultWindow);
    this.#socket.write(
      Buffer.concat([connectionPreface, frame(frameType.settings, 0, window), frame(frameType.windowUpdate, 0, more)]),
    );
  }

  /** Opens a stream with a HEADERS frame made beforehand, which is copied. */
  open(headers: Buffer): number {
    const id = this.#nextStreamId;
    this.#nextStreamId += 2;
    this.#streamWindows.set(id, this.#initialWindow);
    const own = Buffer.from(headers);
    own.writeUInt32BE(id, streamIdAt);
    this.#socket.write(own);
    return id;
  }

  /** The id of a stream whose frames the caller sends itself, within any initial window. */
  takeStreamId(): number {
    const id = this.#nextStreamId;
    this.#nextStreamId += 2;
    return id;
  }

  /** Takes room for a DATA frame of so many bytes; false: there is none now, `writable` will tell. */
  takeWindow(streamId: number, bytes: number): boolean {
    const stream = this.#streamWindows.get(streamId);
    if (this.#connectionWindow < bytes || (stream !== undefined && stream < bytes)) return false;
    this.#connectionWindow -= bytes;
    if (stream !== undefined) this.#streamWindows.set(streamId, stream - bytes);
    return true;
  }

  cork(): void {
    this.#socket.cork();
  }

  uncork(): void {
    this.#socket.uncork();
  }

  write(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  close(): void {
    this.#socket.removeAllListeners('error').on('error', () => {});
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    let opened = false;
    while (bytes.length - at >= frameHeadBytes) {
      const length = bytes.readUIntBE(at, 3);
      if (bytes.length - at < frameHeadBytes + length) break;
      const from = at + frameHeadBytes;
      opened = this.#frame(bytes, at, from, from + length) || opened;
      at = from + length;
    }
    this.#rest = at === bytes.length ? Buffer.alloc(0) : bytes.subarray(at);
    if (opened) this.#receiver.writable();
  }

  /** True where a window was opened. */
  #frame(bytes: Buffer, head: number, from: number, to: number): boolean {
    const flags = bytes[head + 4] ?? 0;
    const endStream = (flags & 1) !== 0;
    const streamId = bytes.readUInt32BE(head + streamIdAt) & maxWindow;
    switch (bytes[head + 3]) {
      case frameType.data:
        this.#receiver.data(streamId, bytes.subarray(from, to), endStream);
        return false;
      case frameType.headers:
        this.#receiver.headers(streamId, endStream);
        return false;
      case frameType.rstStream:
        this.#receiver.reset(streamId);
        return false;
      case frameType.windowUpdate:
        this.#open(streamId, bytes.readUInt32BE(from) & maxWindow);
        return true;
      case frameType.settings:
        if ((flags & flagAck) !== 0) return false;
        for (let at = from; at < to; at += 6) {
          if (bytes.readUInt16BE(at) === settingInitialWindow) this.#setInitialWindow(bytes.readUInt32BE(at + 2));
        }
        this.#socket.write(frame(frameType.settings, flagAck, Buffer.alloc(0)));
        return true;
      case frameType.ping:
        if ((flags & flagAck) === 0) {
          this.#socket.write(frame(frameType.ping, flagAck, Buffer.from(bytes.subarray(from, to))));
        }
        return false;
      case frameType.goAway:
        throw new Error(`the server closes the connection: error ${bytes.readUInt32BE(from + 4)}`);
      default:
        return false;
    }
  }

  #open(streamId: number, bytes: number): void {
    if (streamId === 0) this.#connectionWindow += bytes;
    else {
      const window = this.#streamWindows.get(streamId);
      if (window !== undefined) this.#streamWindows.set(streamId, window + bytes);
    }
  }

  #setInitialWindow(bytes: number): void {
    const change = bytes - this.#initialWindow;
    this.#initialWindow = bytes;
    for (const [id, window] of this.#streamWindows) this.#streamWindows.set(id, window + change);
  }
}
