import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { Metadata } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import { errorAnswer, outcomeAnswer, outcomeIn, showsWork } from '../../../cluster/peers/answers.ts';
import { HeadSubscribers } from '../../../cluster/peers/head-subscribers.ts';
import { clientWire, serverWire } from '../../../cluster/peers/wire.ts';
import { commandText } from '../../../cluster/peers/wire-command.ts';
import { UnreadableCommand } from '../../../cluster/peers/wire-fields.ts';
import { NotOwner, PeerUnreachable } from '../../../src/actors/routing/peers.ts';
import { LedgerError } from '../../../src/domain/errors.ts';
import { formatRow } from '../../../src/domain/event/row.ts';
import {
  type Answer,
  AnswerSchema,
  AskSchema,
  ExchangeRequestSchema,
  type ExchangeResponse,
  ExchangeResponseSchema,
  LedgerHeadSchema,
  NotOwnerSchema,
  OutcomeSchema,
  RefusalSchema,
} from '../../../src/gen/svc/cluster/v1/peers_pb.ts';
import { append, commandKey, ledgerId, siblingId } from '../../support/commands.ts';
import { peerWithSecret, strangePort } from '../../support/peer-attackers.ts';
import {
  failure,
  nodePort,
  openLedgerDirectory,
  ownerPort,
  peersAt,
  peersTo,
  secret,
} from '../../support/peer-ports.ts';

/** Field 99 of protobuf with a text, as a later version may add it to any message. */
const laterField = Buffer.concat([Buffer.from([0x9a, 0x06, 5]), Buffer.from('later')]);
/** A message as a later version may send it. */
function withLater<S extends DescMessage>(schema: S, fields: MessageInitShape<S>): MessageShape<S> {
  return fromBinary(schema, Buffer.concat([toBinary(schema, create(schema, fields)), laterField]));
}
/** Field 5 of an answer: a later case of its result. */
const laterResult = Buffer.from([0x2a, 0x03, 0x0a, 0x01, 0x78]);

const command = append({ commandKeys: [commandKey('k')], payload: '{"a":1}' });

function answerOf(...bytes: readonly Uint8Array[]): Answer {
  return fromBinary(AnswerSchema, Buffer.concat(bytes));
}

async function writtenEvent() {
  const { directory } = await openLedgerDirectory();
  return directory.submit(command);
}

describe('an answer of a later version', () => {
  const refusal = (code: string, details = '{}') =>
    create(AnswerSchema, { id: 1, result: { case: 'refusal', value: { code, message: 'Later.', details } } });

  test.each(['quota_exceeded', '', 'toString', '__proto__'])('with the error code %j is an internal error', (code) => {
    expect(() => outcomeIn(refusal(code))).toThrow(
      expect.objectContaining({ name: 'LedgerError', code: 'internal', message: 'Later.' }),
    );
    expect(showsWork(refusal(code))).toBe(false);
  });

  test.each(['', 'null', '7', '[1]', '{"a":', '"x"'])('with the details %j is read without details', (details) => {
    expect(() => outcomeIn(refusal('not_found', details))).toThrow(expect.objectContaining({ code: 'not_found' }));
  });

  test('with unknown fields is read by the known ones', async () => {
    const { event } = await writtenEvent();
    const answer = toBinary(AnswerSchema, create(AnswerSchema, outcomeAnswer(1, { event, replayed: true })));
    expect(outcomeIn(answerOf(answer, laterField))).toEqual({ event, replayed: true });
    const owner = toBinary(AnswerSchema, create(AnswerSchema, errorAnswer(1, new NotOwner('node-z'))));
    expect(() => outcomeIn(answerOf(owner, laterField))).toThrow(expect.objectContaining({ owner: 'node-z' }));
  });

  test('with unknown fields in its outcome, its refusal or its owner is read by the known ones', async () => {
    const sent = (result: Answer['result']) =>
      answerOf(toBinary(AnswerSchema, create(AnswerSchema, { id: 1, result })));
    const { event } = await writtenEvent();
    const row = { row: formatRow(event), replayed: true };
    const outcome = sent({ case: 'outcome', value: withLater(OutcomeSchema, row) });
    expect(outcome.result.value?.$unknown).toHaveLength(1);
    expect(outcomeIn(outcome)).toEqual({ event, replayed: true });
    const fields = { code: 'not_found', message: 'No.', details: '{"a":1}' };
    const refused = expect.objectContaining({ code: 'not_found', message: 'No.', details: { a: 1 } });
    const refusal = sent({ case: 'refusal', value: withLater(RefusalSchema, fields) });
    expect(() => outcomeIn(refusal)).toThrow(refused);
    for (const owner of ['node-z', 'zone 2/node-z'])
      expect(() => outcomeIn(sent({ case: 'notOwner', value: withLater(NotOwnerSchema, { owner }) }))).toThrow(
        expect.objectContaining({ name: 'NotOwner', owner }),
      );
  });

  test('of an unknown kind leaves the outcome unknown', () => {
    const answer = answerOf(toBinary(AnswerSchema, create(AnswerSchema, { id: 1 })), laterResult);
    expect(answer.result.case).toBeUndefined();
    expect(() => outcomeIn(answer)).toThrow(PeerUnreachable);
    expect(showsWork(answer)).toBe(false);
  });

  test.each(['svc2\n{}', '', 'svc1\n{}\n{}\n\n{}'])('with the unreadable row %j leaves the outcome unknown', (row) => {
    const answer = create(AnswerSchema, { id: 1, result: { case: 'outcome', value: { row, replayed: false } } });
    expect(() => outcomeIn(answer)).toThrow(expect.objectContaining({ name: 'PeerUnreachable', mayHaveArrived: true }));
  });
});

describe('a command of a later version', () => {
  const changed = (change: Record<string, unknown>) =>
    JSON.stringify({ ...JSON.parse(commandText(command)), ...change });

  /** Sends a command to a node of this version. Returns the answer, and the number of written events. */
  async function sent(text: string, later: Uint8Array = new Uint8Array()) {
    const unreadable: unknown[] = [];
    const { port, log } = await ownerPort({ unreadable: (error) => void unreadable.push(error) });
    const { ask, read, answers } = await peerWithSecret(port, secret, 'node-b', 'node-a');
    read();
    ask([text], later);
    await expect.poll(() => answers.length, { interval: 5 }).toBe(1);
    return { result: answers[0]?.result, written: (await log()).length - 3, unreadable };
  }

  test('with unknown fields is run by the known ones', async () => {
    expect(await sent(changed({ tenant: 'x' }), laterField)).toMatchObject({ result: { case: 'outcome' }, written: 1 });
  });

  test.each([
    ['kind', 'merge_ledgers'],
    ['actorType', 'agent'],
    ['signatureRule', 'always'],
    ['eventType', { name: 'x' }],
  ])('with an unknown %s is left to its sender', async (field, value) => {
    const { result, written, unreadable } = await sent(changed({ [field]: value }));
    expect(result).toMatchObject({ case: 'notOwner', value: { owner: '' } });
    expect([written, unreadable.length]).toEqual([0, 1]);
    expect(unreadable[0]).toBeInstanceOf(UnreadableCommand);
  });
});

describe('a stream of a later version', () => {
  /** A node whose responses to each message of commands are these, and what node-b heard of heads from it. */
  async function laterNode(responsesTo: (id: number) => readonly ExchangeResponse[]) {
    const port = await strangePort((call) => {
      const wire = serverWire(secret, 'node-a', call.metadata);
      if (wire === null) throw new Error('not a node');
      wire.answer.set('x-cluster-later', 'x');
      call.sendMetadata(wire.answer);
      call.on('data', (frame: Buffer) => {
        for (const { id } of wire.open(frame).asks)
          for (const response of responsesTo(id)) call.write(wire.seal(response));
      });
    });
    const heard: [string, number][] = [];
    return { peers: peersAt({ port }, { heard: (id, seq) => void heard.push([id, seq]) }), heard };
  }

  test('may have further metadata and fields', async () => {
    const { event } = await writtenEvent();
    const outcome = { event, replayed: false };
    const { peers } = await laterNode((id) => [
      withLater(ExchangeResponseSchema, { answers: [outcomeAnswer(id, outcome)], works: true }),
    ]);
    expect(await peers.ask('node-a', command)).toEqual(outcome);
  });

  test('may tell of any ledger and seq, beside answers that are read', async () => {
    const { event } = await writtenEvent();
    const outcome = { event, replayed: false };
    const [least, most] = [-(2n ** 63n), 2n ** 63n - 1n];
    const heads = [
      withLater(LedgerHeadSchema, { ledgerId, seq: 7n }),
      withLater(LedgerHeadSchema, {}),
      create(LedgerHeadSchema, { ledgerId: 'of another form' }),
      ...[-1n, least, most].map((seq) => create(LedgerHeadSchema, { ledgerId, seq })),
    ];
    const { peers, heard } = await laterNode((id) => [
      withLater(ExchangeResponseSchema, { heads }),
      create(ExchangeResponseSchema, { answers: [outcomeAnswer(id, outcome), { id: 0 }, { id: 77 }], heads }),
    ]);
    expect(await peers.ask('node-a', command)).toEqual(outcome);
    expect(heard.slice(heads.length)).toEqual(heard.slice(0, heads.length));
    expect(heard.slice(heads.length)).toEqual([
      [ledgerId, 7],
      ['', 0],
      ['of another form', 0],
      [ledgerId, -1],
      [ledgerId, Number(least)],
      [ledgerId, Number(most)],
    ]);
    const stream = peers.headsFrom('node-a');
    expect(await peers.ask('node-a', command)).toEqual(outcome);
    expect(peers.headsFrom('node-a')).toBe(stream);
    expect(stream?.isOver).toBe(false);
  });

  test('may ask for the heads of ledgers that this node does not know, beside commands that are run', async () => {
    const subscribers = new HeadSubscribers();
    const { port, log } = await ownerPort({ subscribers });
    const { send, read, answers, heads } = await peerWithSecret(port, secret, 'node-b', 'node-a');
    read();
    const asks = [{ id: 1, command: commandText(command) }];
    const strange = ['', 'of another form', '__proto__', siblingId, 'x'.repeat(100_000)];
    send({ asks, watch: [...strange, ledgerId, ledgerId], unwatch: strange }, laterField);
    send({ unwatch: [...strange, ...strange] });
    await expect.poll(() => answers.length, { interval: 5 }).toBe(1);
    expect([answers[0]?.result.case, (await log()).length - 3]).toEqual(['outcome', 1]);
    subscribers.committed(ledgerId, 8);
    await expect.poll(() => heads, { interval: 5 }).toMatchObject([{ ledgerId, seq: 8n }]);
    send({ unwatch: [ledgerId] });
    send({ asks: [{ id: 2, command: commandText(command) }] });
    await expect.poll(() => answers.length, { interval: 5 }).toBe(2);
    subscribers.committed(ledgerId, 9);
    send({ watch: [siblingId] });
    send({ asks: [{ id: 3, command: commandText(command) }] });
    await expect.poll(() => answers.length, { interval: 5 }).toBe(3);
    expect(heads).toHaveLength(1);
  });

  test('may ask without a command, which is left to its sender, and the other commands are run', async () => {
    const { port, log } = await ownerPort();
    const { send, read, answers } = await peerWithSecret(port, secret, 'node-b', 'node-a');
    read();
    const another = append({ commandKeys: [commandKey('another')] });
    send({ asks: [{ id: 1 }, { id: 2, command: commandText(command) }, withLater(AskSchema, { id: 3 })] });
    send({ asks: [{}, { command: commandText(another) }] });
    await expect.poll(() => answers.length, { interval: 5 }).toBe(5);
    const results = answers.map(({ id, result }) => `${id}: ${result.case}`);
    expect(results.sort()).toEqual(['0: notOwner', '0: outcome', '1: notOwner', '2: outcome', '3: notOwner']);
    expect((await log()).length - 3).toBe(2);
  });

  test('may have further metadata in its greeting and a further field beside a command, which is run', async () => {
    const { port, log } = await ownerPort();
    const { send, read, answers } = await peerWithSecret(port, secret, 'node-b', 'node-a', { 'x-cluster-later': 'x' });
    read();
    const ask = withLater(AskSchema, { id: 1, command: commandText(command) });
    expect(ask.$unknown).toHaveLength(1);
    send({ asks: [ask] });
    await expect.poll(() => answers.length, { interval: 5 }).toBe(1);
    expect([answers[0]?.result.case, (await log()).length - 3]).toEqual(['outcome', 1]);
  });

  test('that refuses with an unknown code gives an internal error', async () => {
    const later = new LedgerError('internal', 'Later.');
    Object.assign(later, { code: 'quota_exceeded' });
    const far = await nodePort({ carryOut: () => Promise.reject(later) });
    expect(await failure(peersTo(far.port).ask(command))).toMatchObject({ name: 'LedgerError', code: 'internal' });
  });
});

/** So nodes of both versions work together while a cluster is upgraded. */
describe('a stream with certificates', () => {
  const tls = { ca: Buffer.alloc(0), cert: Buffer.alloc(0), key: Buffer.alloc(0) };

  test.each([null, 'the secret beside certificates'])(
    'has the metadata and frames of the earlier version if the secret is %j',
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

  test('is refused without the secret, if nodes have one too', () => {
    expect(serverWire({ tls, secret: 'a' }, 'node-a', new Metadata())).toBeNull();
  });
});
