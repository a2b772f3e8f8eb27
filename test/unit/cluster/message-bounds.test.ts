import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { messageFieldsMax, messageItemsMax } from '../../../cluster/peers/exchange-method.ts';
import { HeadSubscribers } from '../../../cluster/peers/head-subscribers.ts';
import { commandText } from '../../../cluster/peers/wire-command.ts';
import { ExchangeRequestSchema, ExchangeResponseSchema } from '../../../src/gen/svc/cluster/v1/peers_pb.ts';
import { checkBounds } from '../../../src/rpc/call/message-bounds.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import { append, ledgerId } from '../../support/commands.ts';
import { peerWithSecret } from '../../support/peer-attackers.ts';
import { nodePort, ownerPort, peersTo, secret } from '../../support/peer-ports.ts';
import { streamWorld } from '../../support/peer-stream-world.ts';
import { startMs } from '../../support/world.ts';

afterEach(() => void vi.useRealTimers());

const times = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);

function bytesOf<S extends DescMessage>(schema: S, fields: MessageInitShape<S>): Uint8Array {
  return toBinary(schema, create(schema, fields));
}

const bounds = { fieldsMax: messageFieldsMax, itemsMax: messageItemsMax };

/** The largest messages that a node of this version or the one before sends, and what each may have no more of. */
const answer = {
  id: 2 ** 32 - 1,
  result: { case: 'refusal', value: { code: 'c', message: 'm', details: '{}' } },
} as const;
const repeated: readonly (readonly [string, DescMessage, (items: number) => Uint8Array])[] = [
  ['asks', ExchangeRequestSchema, (n) => bytesOf(ExchangeRequestSchema, { asks: times(n, { id: 1, command: '{}' }) })],
  ['watch', ExchangeRequestSchema, (n) => bytesOf(ExchangeRequestSchema, { watch: times(n, ledgerId) })],
  ['unwatch', ExchangeRequestSchema, (n) => bytesOf(ExchangeRequestSchema, { unwatch: times(n, ledgerId) })],
  ['answers', ExchangeResponseSchema, (n) => bytesOf(ExchangeResponseSchema, { answers: times(n, answer) })],
  ['heads', ExchangeResponseSchema, (n) => bytesOf(ExchangeResponseSchema, { heads: times(n, { ledgerId, seq: 7n }) })],
];

test.each(repeated)('a message has at most 256 %s', (name, schema, message) => {
  expect(() => checkBounds(schema, message(256), bounds)).not.toThrow();
  expect(() => checkBounds(schema, message(257), bounds)).toThrow(`has more than 256 ${name}`);
});

test('each repeated field of the messages between nodes has a bound, and is no packed number', () => {
  const names: string[] = [];
  const visit = (schema: DescMessage): void => {
    for (const field of schema.fields) {
      if (field.fieldKind === 'list') names.push(field.name);
      // What checkBounds takes for granted.
      expect(['message', 'scalar', 'list']).toContain(field.fieldKind);
      if (field.fieldKind === 'list') expect(field.listKind === 'message' || field.scalar === 9).toBe(true);
      if (field.fieldKind === 'scalar') expect([3, 8, 9, 13]).toContain(field.scalar);
      if (field.message !== undefined) visit(field.message);
    }
  };
  visit(ExchangeRequestSchema);
  visit(ExchangeResponseSchema);
  expect(names.toSorted()).toEqual(repeated.map(([name]) => name).toSorted());
});

test('a message with all that nodes send, and with as much that a later version may send, is read', () => {
  const requests = repeated.slice(0, 3).map(([, , message]) => message(256));
  const answers = repeated.slice(3).map(([, , message]) => message(256));
  const laterField = Buffer.concat([Buffer.from([0x9a, 0x06, 5]), Buffer.from('later')]);
  const later = times(2_000, laterField);
  expect(() => checkBounds(ExchangeRequestSchema, Buffer.concat([...requests, ...later]), bounds)).not.toThrow();
  expect(() => checkBounds(ExchangeResponseSchema, Buffer.concat([...answers, ...later]), bounds)).not.toThrow();
});

/** A field with the number and wire type of the tag, around `inner`. */
const within = (tag: number, inner: Uint8Array) => {
  const length: number[] = [];
  let rest = inner.length;
  for (; rest > 127; rest >>>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([tag, ...length, rest]), inner]);
};

describe('a message is refused before it is decoded', () => {
  const many = 2 ** 20;
  test.each([
    ['with a million empty answers', Buffer.alloc(2 * many, Buffer.from([0x0a, 0]))],
    ['with a million fields that no version knows', Buffer.alloc(3 * many, Buffer.from([0x9a, 0x06, 0]))],
    ['with a million times the same flag', Buffer.alloc(2 * many, Buffer.from([0x10, 1]))],
    ['with an answer of a million outcomes', within(0x0a, Buffer.alloc(2 * many, Buffer.from([0x12, 0])))],
    ['with an outcome of a million rows', within(0x0a, within(0x12, Buffer.alloc(2 * many, Buffer.from([0x0a, 0]))))],
    ['with a group', Buffer.from([0x9b, 0x06, 0x10, 1, 0x9c, 0x06])],
    ['with answers that say that they are numbers', Buffer.from([0x08, 0])],
    [
      'with an answer that runs over its own end',
      Buffer.concat([within(0x0a, Buffer.from([0x9a, 0x06, 4])), Buffer.from([0x10, 1, 0x10, 1])]),
    ],
    ['that is no message', Buffer.from([0xff])],
  ])('%s', (_, bytes) => {
    expect(() => checkBounds(ExchangeResponseSchema, bytes, bounds)).toThrow();
  });
});

test('the node that answers ends a stream with one error, and carries out nothing of a message beyond the bound', async () => {
  const { port, carried } = await ownerPort();
  const { stream, send } = await peerWithSecret(port, secret, 'node-b', 'node-a');
  const errors: ServiceError[] = [];
  stream.on('error', (error: ServiceError) => void errors.push(error)).resume();
  const asks = times(257, { id: 1, command: commandText(append()) });
  for (let again = 0; again < 3; again++) send({ asks });
  await expect.poll(() => errors.length).toBe(1);
  await settled();
  expect(errors.map(({ code, details }) => [code, details])).toEqual([
    [status.INVALID_ARGUMENT, 'a message has more than 256 asks'],
  ]);
  expect(carried).toEqual([]);
  await expect(peersTo(port).ask(append())).resolves.toMatchObject({ event: { seq: 3 } });
});

test('the node that asks ends a stream with one error, and takes no answer of a message beyond the bound', async () => {
  const { far, stream } = streamWorld(new ManualClock(startMs));
  far.accept();
  const asked = stream.ask('{}').catch((error: unknown) => error);
  await settled();
  const message = bytesOf(ExchangeResponseSchema, { answers: times(257, { ...answer, id: far.asks[0]?.id ?? 0 }) });
  for (let again = 0; again < 3; again++) far.emit('data', Buffer.from(message));
  expect(await asked).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: true });
  expect([stream.isOver, far.cancelled]).toEqual([true, true]);
});

test('a node that commits to many ledgers at once tells of them in messages within the bound', async () => {
  const subscribers = new HeadSubscribers();
  const { port } = await nodePort({ subscribers });
  const { stream, send, read, heads } = await peerWithSecret(port, secret, 'node-b', 'node-a');
  let messages = 0;
  stream.on('data', () => void messages++);
  onTestFinished(() => stream.cancel());
  read();
  const ids = Array.from({ length: 600 }, (_, n) => ledgerId.slice(0, -4) + n.toString(16).padStart(4, '0'));
  for (let at = 0; at < ids.length; at += 200) send({ watch: ids.slice(at, at + 200) });
  await expect
    .poll(() => {
      const told = heads.length;
      messages = 0;
      for (const id of ids) subscribers.committed(id, 1);
      return new Promise((resolve) => setTimeout(() => resolve([heads.length - told, messages]), 50));
    })
    .toEqual([600, 3]);
});
