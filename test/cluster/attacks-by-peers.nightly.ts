import { randomUUID } from 'node:crypto';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import type { Metadata } from '@grpc/grpc-js';
import { canonicalize } from 'json-canonicalize';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { outcomeAnswer } from '../../cluster/peers/answers.ts';
import { answerBytesMax, type ExchangeCall } from '../../cluster/peers/incoming-stream.ts';
import type { PeerSecurity } from '../../cluster/peers/security.ts';
import { serverWire } from '../../cluster/peers/wire.ts';
import { commandText } from '../../cluster/peers/wire-command.ts';
import type { AppendEvent } from '../../src/domain/ledger/command.ts';
import { type AnswerSchema, ExchangeResponseSchema } from '../../src/gen/svc/cluster/v1/peers_pb.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import * as commands from '../support/commands.ts';
import { eventsOf, signatureOf } from '../support/parties.ts';
import type { Fields } from '../support/parties-rest.ts';
import { falseProof, peerWithSecret, strangePort } from '../support/peer-attackers.ts';
import { chainOf } from '../support/world.ts';
import { type AttackedCluster, type Pair, portOf, startAttackedCluster } from './rig/attacked-cluster.ts';
import { announceFalseMember } from './rig/false-member.ts';
import type { NodeUnderTest } from './rig/node-under-test.ts';

/** Field 99 of protobuf with a text, as a later version may add it to any message. */
const laterField = Buffer.concat([Buffer.from([0x9a, 0x06, 5]), Buffer.from('later')]);

/** A node that knows the secret. It answers each command with `answerOf`, and adds fields that no version knows. */
function answering(
  security: PeerSecurity,
  answerOf: (id: number) => MessageInitShape<typeof AnswerSchema>,
): (call: ExchangeCall) => void {
  return (call) => {
    const wire = serverWire(security, 'node-x', call.metadata);
    if (wire === null) throw new Error('not a node');
    wire.answer.set('x-cluster-later', 'x');
    call.on('error', () => {});
    call.sendMetadata(wire.answer);
    call.on('data', (frame: Buffer) => {
      for (const { id } of wire.open(frame).asks) {
        const answers = create(ExchangeResponseSchema, { answers: [answerOf(id)] });
        const bytes = Buffer.concat([toBinary(ExchangeResponseSchema, answers), laterField]);
        call.write(wire.seal(fromBinary(ExchangeResponseSchema, bytes)));
      }
    });
  };
}

await describeOnCassandra('a cluster of three that is attacked by peers', (address) => {
  let attacked: AttackedCluster;
  beforeAll(async () => {
    attacked = await startAttackedCluster(address);
  }, 120_000);
  afterAll(() => attacked?.[Symbol.asyncDispose](), 60_000);

  /** A signed command as a node sends it. */
  const command = ({ order, master }: Pair, payload: Fields, from: Partial<AppendEvent> = {}) => {
    const { buyer, ledgerId } = order;
    const whole = { ...payload, ...master.injected };
    const signedForm = canonicalize(whole);
    return commands.append({
      ledgerId,
      masterId: master.uuid,
      actorId: buyer.actorId,
      eventType: 'NOTED',
      payload: signedForm,
      signature: {
        signature: signatureOf(buyer.key.privateKey, 'NOTED', ledgerId, whole),
        keyId: buyer.kid ?? '',
        signedForm,
      },
      ...from,
    });
  };
  const peerOf = (node: NodeUnderTest) =>
    peerWithSecret(portOf(node.internalUrl), attacked.security, 'node-y', node.id);

  test('an unknown error code of a later node becomes internal at each node', async () => {
    const { cluster, expectAllWell, note, pairOf, security } = attacked;
    const later = { code: 'quota_exceeded', message: 'Later.', details: '{}' };
    const refusing = answering(security, (id) => ({ id, result: { case: 'refusal', value: later } }));
    const port = await strangePort(refusing);
    const pair = pairOf(cluster.nodeAt(0));
    {
      await using _ = await announceFalseMember(cluster, port, cluster.shardOf(pair.order.ledgerId));
      for (const node of cluster.nodes)
        await expect
          .poll(async () => (await note(node, pair)).body, { timeout: 5_000 })
          .toMatchObject({ error: { code: 'internal', message: 'Later.' } });
    }
    await expectAllWell();
  }, 60_000);

  test('commands of a later node run if they can be read, and otherwise are left to their sender', async () => {
    const { cluster, expectAllWell, notesIn, pairOf } = attacked;
    for (const node of cluster.nodes) {
      const pair = pairOf(node);
      const { ask, read, answers } = await peerOf(node);
      read();
      const changed = (change: Fields) =>
        JSON.stringify({ ...JSON.parse(commandText(command(pair, { note: `later ${node.id}` }))), ...change });
      ask([changed({ tenant: 'x' })], laterField);
      await expect.poll(() => answers.length).toBe(1);
      ask([changed({ kind: 'merge_ledgers' })], laterField);
      await expect.poll(() => answers.length).toBe(2);
      expect(answers.map(({ result }) => result.case)).toEqual(['outcome', 'notOwner']);
      expect((await notesIn(node, pair)).filter((one) => one === `later ${node.id}`)).toHaveLength(1);
    }
    await expectAllWell();
  });

  test('a peer with the secret cannot have an event written whose signature does not fit', async () => {
    const { cluster, expectAllWell, notesIn, pairOf } = attacked;
    for (const node of cluster.nodes) {
      const pair = pairOf(node);
      const before = (await notesIn(node, pair)).length;
      const { ask, read, answers } = await peerOf(node);
      read();
      const { payload, signature } = command(pair, { note: 'forged' });
      const forged = [
        command(
          pair,
          { note: 'forged' },
          { signature: { ...commands.signature('', payload), keyId: signature?.keyId ?? '' } },
        ),
        command(pair, { note: 'signed' }, { payload }),
        command(pair, { note: 'forged' }, { eventType: { x: 1 } as unknown as string }),
        command(pair, { note: 'forged' }, { signature: null }),
        command(pair, { note: 'forged' }, { signature: null, signatureRule: 'optional' }),
      ];
      ask(forged.map(commandText));
      await expect.poll(() => answers.length).toBe(forged.length);
      const byId = answers
        .toSorted((a, b) => a.id - b.id)
        .map(({ result }) => (result.case === 'refusal' ? result.value.code : result.case));
      expect(byId).toEqual(['invalid_signature', 'notOwner', 'notOwner', 'signature_required', 'notOwner']);
      expect(await notesIn(node, pair)).toHaveLength(before);
    }
    await expectAllWell();
  });

  test('a peer that never reads has no further commands read, and holds bounded memory', async () => {
    const { cluster, expectAllWell, pairOf } = attacked;
    const node = cluster.nodeAt(1);
    const pair = pairOf(node);
    const commandKeys = [commands.commandKey('large')];
    const first = await peerOf(node);
    first.read();
    first.ask([commandText(command(pair, { text: 'x'.repeat(300_000) }, { commandKeys }))]);
    await expect.poll(() => first.answers.length).toBe(1);
    const { stream, ask } = await peerOf(node);
    // Without a first read, grpc-js reads everything into memory.
    stream.pause();
    stream.read(0);
    const held = () => node.counted('svc_memory_budget_bytes{kind="peer"}');
    const again = commandText(command(pair, { text: '' }, { commandKeys, resubmitted: true }));
    const askForMegabytes = () => ask(Array.from({ length: 20 }, () => again));
    for (let messages = 1; messages <= 5; messages++) {
      askForMegabytes();
      // The connection itself buffers up to 6 MB.
      await expect.poll(held).toBeGreaterThan(messages * 6_000_000 - 6_000_000);
    }
    // The node does not read these: they stay in the connection.
    for (let messages = 0; messages < 6; messages++) askForMegabytes();
    await expectAllWell();
    expect(await held()).toSatisfy((bytes: number) => bytes > answerBytesMax / 2 && bytes < answerBytesMax);
    stream.cancel();
    await expect.poll(held).toBe(0);
  }, 30_000);

  test('no node accepts a wrong answer of an owner: it reads the log instead', async () => {
    const { cluster, expectAllWell, noteAgain, pairOf, security } = attacked;
    const [event] = chainOf(commands.openLedger(), commands.createMaster()).events.slice(-1);
    if (event === undefined) throw new Error('no event');
    const port = await strangePort(answering(security, (id) => outcomeAnswer(id, { event, replayed: false })));
    const pair = pairOf(cluster.nodeAt(0));
    {
      await using _ = await announceFalseMember(cluster, port, cluster.shardOf(pair.order.ledgerId));
      for (const node of cluster.nodes) {
        const wrong = () => node.counted('svc_forwarded_calls_total{result="wrong_answer"}');
        const told = async () => {
          const text = `note ${randomUUID()}`;
          const { raw, body } = await noteAgain(node, pair, text);
          expect(raw).not.toContain(event.id);
          const written = (await eventsOf(node.baseUrl, pair.order.buyer, pair.order.ledgerId)).filter(
            ({ payload }) => (payload as Fields).note === text,
          );
          expect(written.map(({ id }) => id)).toEqual([body.event_id]);
          return wrong();
        };
        await expect.poll(told).toBeGreaterThan(0);
      }
    }
    await expectAllWell();
  }, 60_000);

  test('a false address in Redis gets no data and delays no call', async () => {
    const { cluster, expectAllWell, noteAgain, pairOf, security } = attacked;
    const heard: (Buffer | Metadata)[] = [];
    let streams = 0;
    const port = await strangePort((call) => {
      streams += 1;
      heard.push(call.metadata);
      call.on('error', () => {});
      call.on('data', (frame: Buffer) => void heard.push(frame));
      call.sendMetadata(falseProof('node-x'));
    });
    const pair = pairOf(cluster.nodeAt(0));
    {
      await using _ = await announceFalseMember(cluster, port, cluster.shardOf(pair.order.ledgerId));
      const asked = new Set<string>();
      await expect
        .poll(
          async () => {
            for (const node of cluster.nodes) {
              expect((await noteAgain(node, pair)).status).toBe(200);
              if ((await node.counted('svc_forwarded_calls_total{result="unreachable"}')) > 0) asked.add(node.id);
            }
            return asked.size;
          },
          { timeout: 10_000, interval: 200 },
        )
        .toBe(3);
    }
    expect(streams).toBeGreaterThanOrEqual(3);
    expect(heard.filter((one) => Buffer.isBuffer(one))).toEqual([]);
    expect(JSON.stringify(heard)).not.toContain(security.secret);
    await expectAllWell();
  }, 60_000);
});
