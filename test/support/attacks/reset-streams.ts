import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { callHeaders, endHeaders, frame, frameType, headerBlock, preface, settings } from './http2-frames.ts';

const head = { ':method': 'POST', ':scheme': 'http', ':path': '/', ':authority': 'a' };
const cancel = Buffer.from([0, 0, 0, 8]);

/** A stream that is no gRPC, or one of an unknown method, and its reset. */
function resetStream(id: number, headers: Buffer): Buffer {
  return Buffer.concat([frame(frameType.headers, endHeaders, id, headers), frame(frameType.rstStream, 0, id, cancel)]);
}

const kinds = [headerBlock(head), headerBlock({ ...head, 'content-type': 'text/plain' }), callHeaders('/none/Such')];

/** Streams that are over before their handler runs, where all of the first bytes are parsed in one go. */
export async function resetFirstStreams(port: number): Promise<void> {
  for (const headers of kinds) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.write(Buffer.concat([preface, settings(), resetStream(1, headers)]));
    await ended(socket);
  }
}

/**
 * The same over TLS: the first record makes the node write, and the others arrive with it and are parsed when that
 * write has ended.
 */
export async function resetStreamsOverTls(port: number): Promise<void> {
  const call = frame(frameType.headers, endHeaders, 1, callHeaders('/grpc.health.v1.Health/Check'));
  const paused = frame(frameType.data, 0, 1, Buffer.alloc(1));
  for (const headers of kinds) {
    const raw = connect({ port, host: '127.0.0.1', noDelay: true }).on('error', () => {});
    const held: Buffer[] = [];
    let isHeld = false;
    const below = new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, written) {
        if (isHeld) held.push(chunk);
        else raw.write(chunk);
        written();
      },
    });
    raw.on('data', (chunk) => below.push(chunk)).on('close', () => below.destroy());
    const secure = connectTls({ socket: below, ALPNProtocols: ['h2'], rejectUnauthorized: false });
    secure.on('error', () => {});
    await new Promise((resolve) => secure.once('secureConnect', resolve));
    isHeld = true;
    secure.write(Buffer.concat([preface, settings(), call]));
    secure.write(Buffer.concat([paused, resetStream(3, headers), resetStream(5, headers)]));
    await new Promise((resolve) => setTimeout(resolve, 20));
    raw.write(Buffer.concat(held));
    await ended(raw);
  }
}

/** Gives the node time to handle what came, then leaves. */
async function ended(socket: Socket): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 100));
  socket.destroy();
}
