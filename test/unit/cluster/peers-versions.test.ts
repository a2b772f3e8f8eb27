import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Metadata } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import { errorAnswer, outcomeAnswer, outcomeIn, showsWork } from '../../../cluster/peers/answers.ts';
import { clientWire, serverWire } from '../../../cluster/peers/wire.ts';
import { commandText } from '../../../cluster/peers/wire-command.ts';
import { UnreadableCommand } from '../../../cluster/peers/wire-fields.ts';
import { NotOwner, PeerUnreachable } from '../../../src/actors/routing/peers.ts';
import { LedgerError } from '../../../src/domain/errors.ts';
import {
  type Answer,
  AnswerSchema,
  ExchangeRequestSchema,
  ExchangeResponseSchema,
} from '../../../src/gen/svc/cluster/v1/peers_pb.ts';
import { append, commandKey } from '../../support/commands.ts';
import { strangePort, strangeStream } from '../../support/peer-attackers.ts';
import { failure, nodePort, openLedgerDirectory, peersTo, secret } from '../../support/peer-ports.ts';

/** Field 99 of protobuf with a text, as a later version may add it to any message. */
const laterField = Buffer.concat([Buffer.from([0x9a, 0x06, 5]), Buffer.from('later')]);
/** The same as field 5 of an answer: another case of its result. */
const laterResult = Buffer.from([0x2a, 0x03, 0x0a, 0x01, 0x78]);

const command = append({ commandKeys: [commandKey('k')], payload: '{"a":1}' });

function answerOf(...bytes: readonly Uint8Array[]): Answer {
  return fromBinary(AnswerSchema, Buffer.concat(bytes));
}

async function writtenEvent() {
  const { directory } = await openLedgerDirectory();
  return directory.submit(command);
}

describe('an answer of the next version', () => {
  const refusal = (code: string, details = '{}') =>
    create(AnswerSchema, { id: 1, result: { case: 'refusal', value: { code, message: 'Later.', details } } });

  test.each(['quota_exceeded', '', 'toString', '__proto__'])('that refuses with %j is internal', (code) => {
    expect(() => outcomeIn(refusal(code))).toThrow(
      expect.objectContaining({ name: 'LedgerError', code: 'internal', message: 'Later.' }),
    );
    expect(showsWork(refusal(code))).toBe(false);
  });

  test.each(['', 'null', '7', '[1]', '{"a":', '"x"'])('with details %j is read without them', (details) => {
    expect(() => outcomeIn(refusal('not_found', details))).toThrow(expect.objectContaining({ code: 'not_found' }));
  });

  test('with fields that this one does not know is read by those that it knows', async () => {
    const { event } = await writtenEvent();
    const answer = toBinary(AnswerSchema, create(AnswerSchema, outcomeAnswer(1, { event, replayed: true })));
    expect(outcomeIn(answerOf(answer, laterField))).toEqual({ event, replayed: true });
    const owner = toBinary(AnswerSchema, create(AnswerSchema, errorAnswer(1, new NotOwner('node-z'))));
    expect(() => outcomeIn(answerOf(owner, laterField))).toThrow(expect.objectContaining({ owner: 'node-z' }));
  });

  test('of a kind that this one does not know may be of a command that was written', () => {
    const answer = answerOf(toBinary(AnswerSchema, create(AnswerSchema, { id: 1 })), laterResult);
    expect(answer.result.case).toBeUndefined();
    expect(() => outcomeIn(answer)).toThrow(PeerUnreachable);
    expect(showsWork(answer)).toBe(false);
  });

  test.each(['svc2\n{}', '', 'svc1\n{}\n{}\n\n{}'])(
    'with a row that this one cannot read may be of one too: %j',
    (row) => {
      const answer = create(AnswerSchema, { id: 1, result: { case: 'outcome', value: { row, replayed: false } } });
      expect(() => outcomeIn(answer)).toThrow(
        expect.objectContaining({ name: 'PeerUnreachable', mayHaveArrived: true }),
      );
    },
  );
});

describe('a command of the next version', () => {
  const changed = (change: Record<string, unknown>) =>
    JSON.stringify({ ...JSON.parse(commandText(command)), ...change });

  /** What a node of this version makes of one: who carried it out, and the answer. */
  async function sent(text: string, later: Uint8Array = new Uint8Array()) {
    const { directory, log } = await openLedgerDirectory();
    const unreadable: unknown[] = [];
    const more = { unreadable: (error: UnreadableCommand) => void unreadable.push(error) };
    const { port } = await nodePort(
      (one) => directory.carryOut(one),
      secret,
      0,
      () => 0,
      more,
    );
    const wire = clientWire(secret, 'node-b', 'node-a');
    const stream = strangeStream(port, wire.greeting);
    const answers: Answer[] = [];
    stream.on('data', (frame: Buffer) => void answers.push(...wire.open(frame).answers));
    stream.on('error', () => {});
    await new Promise<void>((resolve) => {
      stream.once('metadata', (metadata: Metadata) => {
        wire.accept(metadata);
        resolve();
      });
    });
    const asks = [{ id: 7, command: text }];
    const request = toBinary(ExchangeRequestSchema, create(ExchangeRequestSchema, { asks }));
    stream.write(wire.seal(fromBinary(ExchangeRequestSchema, Buffer.concat([request, later]))));
    await expect.poll(() => answers.length, { interval: 5 }).toBe(1);
    stream.cancel();
    return { result: answers[0]?.result, written: (await log()).length - 3, unreadable };
  }

  test('with fields that this one does not know is carried out by those that it knows', async () => {
    expect(await sent(changed({ tenant: 'x' }), laterField)).toMatchObject({ result: { case: 'outcome' }, written: 1 });
  });

  test.each([
    ['kind', 'merge_ledgers'],
    ['actorType', 'agent'],
    ['signatureRule', 'always'],
    ['eventType', { name: 'x' }],
  ])('with a %s that this one does not know is left to the node that sent it', async (field, value) => {
    const { result, written, unreadable } = await sent(changed({ [field]: value }));
    expect(result).toMatchObject({ case: 'notOwner', value: { owner: '' } });
    expect([written, unreadable.length]).toEqual([0, 1]);
    expect(unreadable[0]).toBeInstanceOf(UnreadableCommand);
  });
});

describe('a stream of the next version', () => {
  test('may say more at its beginning, and in each message', async () => {
    const { event } = await writtenEvent();
    const port = await strangePort((call) => {
      const wire = serverWire(secret, 'node-a', call.metadata);
      if (wire === null) throw new Error('not a node');
      wire.answer.set('x-cluster-later', 'x');
      call.sendMetadata(wire.answer);
      const later = (message: Uint8Array) => fromBinary(ExchangeResponseSchema, Buffer.concat([message, laterField]));
      call.on('data', (frame: Buffer) => {
        for (const { id } of wire.open(frame).asks) {
          const answers = [outcomeAnswer(id, { event, replayed: false })];
          const message = toBinary(ExchangeResponseSchema, create(ExchangeResponseSchema, { answers, works: true }));
          call.write(wire.seal(later(message)));
        }
      });
    });
    expect(await peersTo(port).ask(command)).toEqual({ event, replayed: false });
  });

  test('that refuses with a code of its own ends no node that forwards to it', async () => {
    const later = new LedgerError('internal', 'Later.');
    Object.assign(later, { code: 'quota_exceeded' });
    const far = await nodePort(async () => {
      throw later;
    });
    expect(await failure(peersTo(far.port).ask(command))).toMatchObject({ name: 'LedgerError', code: 'internal' });
  });
});

/**
 * With certificates a stream is what it was in the version before: nothing but the id of the node at its beginning, and the messages as they
 * are. So nodes of both work together while a cluster is upgraded.
 */
describe('the version before, with certificates', () => {
  const tls = { ca: Buffer.alloc(0), cert: Buffer.alloc(0), key: Buffer.alloc(0) };

  test.each([null, 'the secret beside certificates'])(
    'is understood, and understands this one; the secret is %j',
    (text) => {
      const security = { tls, secret: text };
      const [client, before] = [clientWire(security, 'node-b', 'node-a'), new Metadata()];
      if (text !== null) before.set('x-cluster-secret', text);
      expect(client.greeting.getMap()).toEqual(before.getMap());
      const server = serverWire(security, 'node-a', before);
      expect(server?.answer.getMap()).toEqual({ 'x-cluster-node': 'node-a' });
      client.accept(server?.answer ?? new Metadata());
      const request = create(ExchangeRequestSchema, { asks: [{ id: 1, command: commandText(command) }] });
      expect(client.seal(request)).toEqual(Buffer.from(toBinary(ExchangeRequestSchema, request)));
      const response = create(ExchangeResponseSchema, { works: true });
      expect(server?.seal(response)).toEqual(Buffer.from(toBinary(ExchangeResponseSchema, response)));
    },
  );

  test('is refused where it does not know the secret beside', () => {
    expect(serverWire({ tls, secret: 'a' }, 'node-a', new Metadata())).toBeNull();
  });
});
