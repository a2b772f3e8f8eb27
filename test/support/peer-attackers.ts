import { connect, createServer, type Socket } from 'node:net';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { Client, credentials, Metadata, Server, ServerCredentials } from '@grpc/grpc-js';
import { onTestFinished } from 'vitest';
import { exchangeMethod } from '../../cluster/peers/exchange-method.ts';
import type { ExchangeCall } from '../../cluster/peers/incoming-stream.ts';
import type { PeerSecurity } from '../../cluster/peers/security.ts';
import { clientWire } from '../../cluster/peers/wire.ts';
import { type Answer, ExchangeRequestSchema, type LedgerHead } from '../../src/gen/svc/cluster/v1/peers_pb.ts';

/** Opens a gRPC port that passes each stream of a node to `serve`. It ends with the test. */
export async function strangePort(serve: (call: ExchangeCall) => void): Promise<number> {
  const server = new Server();
  server.addService({ exchange: exchangeMethod }, { exchange: serve });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  onTestFinished(() => server.forceShutdown());
  return port;
}

/** Opens a stream at a node's internal port. */
export function strangeStream(port: number, greeting = new Metadata()) {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  onTestFinished(() => client.close());
  const { path, requestSerialize, responseDeserialize } = exchangeMethod;
  return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, greeting);
}

/** The answer of a listener that does not know the secret: a wrong proof. */
export function falseProof(node: string): Metadata {
  const answer = new Metadata();
  answer.set('x-cluster-node', node);
  answer.set('x-cluster-server-nonce', Buffer.alloc(32).toString('base64'));
  answer.set('x-cluster-server-proof', Buffer.alloc(32).toString('base64'));
  return answer;
}

/** Opens a stream as a peer that knows the secret. `later`: metadata that another version may add to its greeting. */
export async function peerWithSecret(
  port: number,
  security: PeerSecurity,
  self: string,
  node: string,
  later: Readonly<Record<string, string>> = {},
) {
  const wire = clientWire(security, self, node);
  for (const [key, value] of Object.entries(later)) wire.greeting.set(key, value);
  const stream = strangeStream(port, wire.greeting);
  onTestFinished(() => stream.cancel());
  stream.on('error', () => {});
  await new Promise<void>((resolve) => {
    stream.once('metadata', (metadata: Metadata) => {
      wire.accept(metadata);
      resolve();
    });
  });
  let id = 0;
  const answers: Answer[] = [];
  const heads: LedgerHead[] = [];
  /** `later`: bytes after the message, as another version may have. */
  const send = (request: MessageInitShape<typeof ExchangeRequestSchema>, later: Uint8Array = new Uint8Array()) => {
    const bytes = toBinary(ExchangeRequestSchema, create(ExchangeRequestSchema, request));
    return stream.write(wire.seal(fromBinary(ExchangeRequestSchema, Buffer.concat([bytes, later]))));
  };
  return {
    stream,
    send,
    /** Sends commands in one message. */
    ask: (texts: readonly string[], later?: Uint8Array) =>
      send({ asks: texts.map((command) => ({ id: ++id, command })) }, later),
    read: () =>
      stream.on('data', (frame: Buffer) => {
        const response = wire.open(frame);
        answers.push(...response.answers);
        heads.push(...response.heads);
      }),
    answers,
    heads,
  };
}

/** Returns the frames to forward instead of a frame. `at` counts the frames of one direction from 0. */
export type Meddling = (frame: Buffer, at: number) => readonly Buffer[];

const passing: Meddling = (frame) => [frame];

/** Opens a relay that forwards the frames of a stream in both directions, and may change them. */
export function relayTo(port: number, meddle: { requests?: Meddling; answers?: Meddling } = {}): Promise<number> {
  const { requests = passing, answers = passing } = meddle;
  return strangePort((call) => {
    const onward = strangeStream(port, call.metadata);
    const [asked, answered] = [{ frames: 0 }, { frames: 0 }];
    call.on('data', (frame: Buffer) => {
      for (const one of requests(frame, asked.frames++)) onward.write(one);
    });
    onward.on('metadata', (metadata) => call.sendMetadata(metadata));
    onward.on('data', (frame: Buffer) => {
      for (const one of answers(frame, answered.frames++)) call.write(one);
    });
    onward.on('error', (error) => void call.emit('error', error));
    onward.on('end', () => call.end());
    for (const event of ['cancelled', 'error'] as const) call.on(event, () => onward.cancel());
  });
}

/** Opens a relay that records all bytes of both directions. */
export async function listeningPort(port: number): Promise<{ port: number; heard: () => Buffer }> {
  const bytes: Buffer[] = [];
  const sockets: Socket[] = [];
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    sockets.push(near, far);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('data', (data) => {
        bytes.push(data);
        to.write(data);
      });
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { port: address.port, heard: () => Buffer.concat(bytes) };
}
