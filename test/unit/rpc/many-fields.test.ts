import { gzipSync } from 'node:zlib';
import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MasterService } from '../../../src/gen/svc/v1/masters_pb.ts';
import { CreateWebhookRequestSchema } from '../../../src/gen/svc/v1/webhooks_pb.ts';
import { readMessage } from '../../../src/rpc/call/json-fields.ts';
import { binaryTexts } from '../../../src/rpc/call/readable-request.ts';
import { type Endpoint, rpcPathOf } from '../../../src/rpc/endpoints/endpoint.ts';
import { apiServices } from '../../../src/rpc/endpoints/routes.ts';
import { limits } from '../../../src/runtime/limits/limits.ts';
import { eventTypesMax } from '../../../src/service/webhooks/webhooks.ts';
import { grpcClient, infoOf, metadataOf } from '../../support/grpc-client.ts';
import { bearer, type ListeningNode, masterId, startListeningNode } from '../../support/listening-node.ts';

/** Many short fields take long to decode, on the thread that all calls share. */

const { requestFieldsMax } = limits;
const event = { uuid: masterId, eventType: 'A', payload: '{}' };
/** The event as a message of so many fields, with other texts before its own three. */
const withFields = (schema: DescMessage, fields: number) => {
  const own = toBinary(schema, create(schema, event as MessageInitShape<DescMessage>));
  return Buffer.concat([Buffer.alloc(4 * (fields - 3), Buffer.from([0x12, 2, 0xc3, 0xa9])), own]);
};
const manyFields = limits.requestBodyMaxBytes / 4 - 100;

const { appendEvent, appendEvents } = MasterService.method;
let taken = 0;
let node: ListeningNode;
const clients: Client[] = [];

beforeAll(async () => {
  node = await startListeningNode({
    handlers: {
      'MasterService.AppendEvent': async () => {
        taken += 1;
        return {};
      },
      'MasterService.AppendEvents': async function* (requests: AsyncIterable<object>) {
        for await (const _ of requests) {
          taken += 1;
          yield {};
        }
      },
    },
  });
  const insecure = credentials.createInsecure();
  clients.push(
    grpcClient(node.grpcAddress),
    new Client(node.grpcAddress, insecure, { 'grpc.default_compression_algorithm': 2 }),
  );
});

afterAll(async () => {
  for (const client of clients) client.close();
  await node[Symbol.asyncDispose]();
});

const asItIs = (bytes: Buffer): Buffer => bytes;

/** What a method of requests and answers as bytes says to one message: the reason of its error; null if it took it. */
function unary(client: Client, message: Buffer): Promise<string | null> {
  return new Promise((resolve) => {
    const path = rpcPathOf(appendEvent);
    client.makeUnaryRequest(path, asItIs, asItIs, message, metadataOf(bearer), (error) =>
      resolve(error === null ? null : (infoOf(error)?.reason ?? 'no reason')),
    );
  });
}

function streamed(client: Client, message: Buffer): Promise<string | null> {
  return new Promise((resolve) => {
    const stream = client.makeBidiStreamRequest(rpcPathOf(appendEvents), asItIs, asItIs, metadataOf(bearer));
    stream.on('error', (error) => resolve(infoOf(error as never)?.reason ?? 'no reason'));
    stream.on('end', () => resolve(null)).resume();
    stream.end(message);
  });
}

async function connect(message: Buffer, isPacked: boolean): Promise<string | null> {
  const headers = {
    ...bearer,
    'content-type': 'application/proto',
    ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
  };
  const body = new Uint8Array(isPacked ? gzipSync(message) : message);
  const answer = await fetch(`${node.base}${rpcPathOf(appendEvent)}`, { method: 'POST', headers, body });
  return answer.ok ? null : (((await answer.json()) as { message?: string }).message ?? 'no message');
}

async function grpcWeb(message: Buffer, isPacked: boolean): Promise<string | null> {
  const packed = isPacked ? gzipSync(message) : message;
  const head = Buffer.alloc(5);
  head.writeUInt8(isPacked ? 1 : 0, 0);
  head.writeUInt32BE(packed.length, 1);
  const headers = {
    ...bearer,
    'content-type': 'application/grpc-web+proto',
    'grpc-encoding': isPacked ? 'gzip' : 'identity',
  };
  const body = new Uint8Array(Buffer.concat([head, packed]));
  const answer = await fetch(`${node.base}${rpcPathOf(appendEvent)}`, { method: 'POST', headers, body });
  const text = answer.headers.get('grpc-message') ?? (await answer.text());
  return text.includes('grpc-status: 0') ? null : decodeURIComponent(text);
}

type Send = (message: Buffer, isPacked: boolean) => Promise<string | null>;
const clientOf = (isPacked: boolean) => clients[isPacked ? 1 : 0] as Client;
const tooMany = `A request may have ${requestFieldsMax} fields.`;
const transports: readonly (readonly [string, DescMessage, Send, string])[] = [
  ['gRPC', appendEvent.input, (message, isPacked) => unary(clientOf(isPacked), message), 'payload_too_large'],
  ['a stream', appendEvents.input, (message, isPacked) => streamed(clientOf(isPacked), message), 'payload_too_large'],
  ['Connect', appendEvent.input, connect, tooMany],
  ['gRPC-Web', appendEvent.input, grpcWeb, tooMany],
];

describe.each(transports)('a message with very many fields over %s', (_, schema, send, refusal) => {
  it.each([false, true])('is refused before it is read (packed: %s)', async (isPacked) => {
    taken = 0;
    expect(await send(withFields(schema, requestFieldsMax), isPacked)).toBe(null);
    expect(taken).toBe(1);
    for (const fields of [requestFieldsMax + 1, manyFields])
      expect(await send(withFields(schema, fields), isPacked)).toContain(refusal);
    expect(taken).toBe(1);
  });
});

it.each([
  // The decoder reads the length as the number, and what is in the text as fields.
  ['a number that says that it is a text', [0x0a, 4, 0x12, 2, 0xc3, 0xa9]],
  ['a text that says that it is a number', [0x10, 0]],
  ['a group', [0x7b, 0x7c]],
])('a message whose form hides fields from the count is refused: %s', (_, hiding) => {
  const endpoint = { method: appendEvents } as unknown as Endpoint;
  const bytes = Buffer.concat([Buffer.from(hiding), withFields(appendEvents.input, 3)]);
  expect(() => readMessage(endpoint, bytes)).toThrow(expect.objectContaining({ code: 'invalid_argument' }));
});

it('as many fields as the service allows are far below the bound', () => {
  const eventTypes = Array.from({ length: 2 * eventTypesMax }, () => 'A');
  const bytes = toBinary(CreateWebhookRequestSchema, create(CreateWebhookRequestSchema, { url: 'u', eventTypes }));
  const webhooks = { method: { input: CreateWebhookRequestSchema } } as unknown as Endpoint;
  expect(readMessage(webhooks, bytes)).toMatchObject({ eventTypes });
});

it('what a refused message names is looked for in as many fields', () => {
  const textsOf = (fields: number) => binaryTexts(appendEvent.input, withFields(appendEvent.input, fields));
  expect(textsOf(requestFieldsMax)).toMatchObject({ uuid: masterId });
  expect(textsOf(requestFieldsMax + 3)).toMatchObject({ uuid: '', eventType: 'é' });
});

it('the fields of all requests have forms that the count knows, and repeated ones are no packed numbers', () => {
  const kinds = new Set<string>();
  const visit = (schema: DescMessage): void => {
    for (const field of schema.fields) {
      if (field.fieldKind === 'list') expect(field.listKind === 'message' || field.scalar === 9).toBe(true);
      if (field.fieldKind === 'scalar') expect([3, 5, 8, 9, 13]).toContain(field.scalar);
      kinds.add(field.fieldKind);
      if (field.message !== undefined) visit(field.message);
    }
  };
  for (const { methods } of apiServices) for (const { input } of methods) visit(input);
  for (const kind of kinds) expect(['message', 'scalar', 'list']).toContain(kind);
});
