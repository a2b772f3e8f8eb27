import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Metadata } from '@grpc/grpc-js';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { unprovenStreamsMax } from '../../../cluster/peers/grpc-peers.ts';
import { clientWire } from '../../../cluster/peers/wire.ts';
import { membersMax } from '../../../cluster/placement/members.ts';
import { resetFirstStreams } from '../../support/attacks/reset-streams.ts';
import { append, commandKey } from '../../support/commands.ts';
import {
  falseProof,
  listeningPort,
  type Meddling,
  relayTo,
  strangePort,
  strangeStream,
} from '../../support/peer-attackers.ts';
import { failure, nodePort, ownerPort, peersAt, peersTo, secret } from '../../support/peer-ports.ts';

const notArrived = { name: 'PeerUnreachable', mayHaveArrived: false };
const command = append({ payload: '{"amount":"4711"}', commandKeys: [commandKey('k')] });

/** A port that accepts connections and never answers. `addressOf`: all nodes but node-a are there, until its end. */
async function silentNodes() {
  const silent = new Set<Socket>();
  const server = createServer((socket) => {
    silent.add(socket);
    socket.on('error', () => {}).on('close', () => silent.delete(socket));
    socket.resume();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  let hasEnded = false;
  const end = () => {
    hasEnded = true;
    for (const socket of silent) socket.destroy();
    server.close();
  };
  onTestFinished(end);
  const { port } = server.address() as AddressInfo;
  const addressOf = (nodeA: number) => (id: string) =>
    id !== 'node-a' && hasEnded ? null : `127.0.0.1:${id === 'node-a' ? nodeA : port}`;
  return { silent, end, addressOf };
}

describe('an address that is not the expected node', () => {
  test('gets neither the secret nor a command', async () => {
    const heard: (Buffer | Metadata)[] = [];
    const port = await strangePort((call) => {
      heard.push(call.metadata);
      call.on('data', (frame: Buffer) => void heard.push(frame));
      call.sendMetadata(falseProof('node-a'));
    });
    const { ask, results } = peersTo(port);
    expect(await failure(ask(command))).toMatchObject(notArrived);
    expect(results).toEqual(['unreachable']);
    expect(heard.filter((one) => Buffer.isBuffer(one))).toEqual([]);
    expect(JSON.stringify(heard)).not.toContain(secret.secret);
  });

  // A relay to the asking node itself gives that node's own proof, which names another node than the one asked.
  test.each([
    ['a relay to the asking node', 'node-b', (port: number) => relayTo(port)],
    ['another node than the one that was asked', 'node-c', async (port: number) => port],
  ])('gets no command if it is %s', async (_, self, reached) => {
    const { port, carried } = await ownerPort({ self });
    expect(await failure(peersTo(await reached(port)).ask(command))).toMatchObject(notArrived);
    expect(carried).toEqual([]);
  });

  test.each([
    ['no proof', new Metadata()],
    ['a false proof', falseProof('node-a')],
    ['the proof of another node', falseProof('node-c')],
  ])('with %s is hung up on at once, before it has sent much', async (_, answer) => {
    const cancelled = vi.fn();
    const far = await strangePort((call) => {
      call.on('error', () => {});
      call.on('cancelled', cancelled);
      call.sendMetadata(answer);
      call.write(Buffer.alloc(3 * 1024 * 1024));
    });
    const { port, heard } = await listeningPort(far);
    // No time ends the stream within the test.
    const { ask } = peersTo(port, { budgetMs: 60_000, busyPeerBudgetMs: 60_000 });
    expect(await failure(ask(command))).toMatchObject(notArrived);
    await expect.poll(() => cancelled.mock.calls.length).toBe(1);
    expect(heard().length).toBeLessThan(512 * 1024);
  });

  test('has few streams at once, whose places a node gets when they end', async () => {
    const { silent, end, addressOf } = await silentNodes();
    const node = await ownerPort();
    const peers = peersAt({ port: null }, { addressOf: addressOf(node.port), budgetMs: 60_000 });
    for (let member = 0; member < 400; member++) peers.headsFrom(`false-${member}`);
    await expect.poll(() => silent.size, { timeout: 5_000 }).toBe(unprovenStreamsMax);
    expect(await failure(peers.ask('node-a', command))).toMatchObject(notArrived);
    end();
    const asked = async () => (await failure(peers.ask('node-a', command))) === 'carried out';
    await expect.poll(asked, { timeout: 5_000 }).toBe(true);
    expect(node.carried).toHaveLength(1);
  });

  test('takes no place from any node of the largest cluster', async () => {
    const { addressOf } = await silentNodes();
    const node = await ownerPort();
    const peers = peersAt({ port: null }, { addressOf: addressOf(node.port), budgetMs: 60_000 });
    for (let member = 2; member < membersMax; member++) peers.headsFrom(`node-${member}`);
    expect(await failure(peers.ask('node-a', command))).toBe('carried out');
  });

  test('keeps a node that failed from a new stream only while there is no place, even if no command waits', async () => {
    const { silent, end, addressOf } = await silentNodes();
    const { port, close } = await nodePort();
    await close();
    const peers = peersAt({ port: null }, { addressOf: addressOf(port), budgetMs: 60_000 });
    expect(await failure(peers.ask('node-a', command))).toMatchObject(notArrived);
    for (let member = 0; member < 400; member++) peers.headsFrom(`false-${member}`);
    await expect.poll(() => silent.size, { timeout: 5_000 }).toBe(unprovenStreamsMax);
    const onProof = vi.fn();
    await nodePort({ port, onProof });
    // Longer than the pause after a failure.
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(onProof).not.toHaveBeenCalled();
    end();
    await expect.poll(() => onProof.mock.calls.length, { timeout: 5_000 }).toBe(1);
  });

  // announcement.test.ts has more of them.
  test.each(['unix:/tmp/x', 'xds:///a', 'http://a:1', 'a:b@c:1', 'a:1/x', 'a:0', 'a:65536', '[::1', 'a b:1', ''])(
    'gets no command if it is %j, which is not host and port',
    async (address) => {
      const peers = peersAt({ port: 1 }, { addressOf: () => address });
      expect(await failure(peers.ask('node-a', command))).toMatchObject(notArrived);
      peers.forgetGone();
    },
  );
});

describe('a relay between two nodes', () => {
  test('can read neither a command nor an event', async () => {
    const far = await ownerPort();
    const wire = await listeningPort(far.port);
    const { event } = await peersTo(wire.port).ask(command);
    expect(event.payload).toBe(command.payload);
    const heard = wire.heard().toString('latin1');
    expect(heard.length).toBeGreaterThan(500);
    for (const text of [secret.secret ?? '', '4711', event.hash, command.ledgerId]) expect(heard).not.toContain(text);
  });

  test('can forward frames unchanged', async () => {
    const far = await ownerPort();
    expect(await peersTo(await relayTo(far.port)).ask(command)).toMatchObject({ event: { seq: 3 } });
  });

  /** Flips a bit of the byte at `place`; negative: from the end. */
  const flip =
    (place: number): Meddling =>
    (frame, at) => {
      const index = place < 0 ? frame.length + place : place;
      if (at > 0) frame[index] = (frame[index] ?? 0) ^ 1;
      return [frame];
    };
  const [changed, sealChanged] = [flip(-1), flip(0)];
  const first: { frame?: Buffer } = {};
  const sentAgain: Meddling = (frame, at) => {
    if (at === 0) first.frame = Buffer.from(frame);
    return at === 0 ? [frame] : [first.frame ?? frame, frame];
  };
  const left: Meddling = (_frame, at) => (at === 0 ? [] : [_frame]);
  const cut: Meddling = (frame, at) => [at > 0 ? frame.subarray(0, 10) : frame];
  const plain: Meddling = (frame, at) => (at > 0 ? [frame.subarray(16)] : [frame]);

  test.each([
    ['changed', changed],
    ['changed in its seal', sealChanged],
    ['sent again', sentAgain],
    ['preceded by a missing frame', left],
    ['cut', cut],
    ['without a seal', plain],
  ])('cannot have a command run whose frame is %s', async (_, requests) => {
    const far = await ownerPort();
    expect(await failure(peersTo(await relayTo(far.port, { requests })).ask(command))).toMatchObject({
      name: 'PeerUnreachable',
    });
    expect(far.carried).toEqual([]);
  });

  // The first frame of the owner is the answer.
  const from1 =
    (meddling: Meddling): Meddling =>
    (frame, at) =>
      meddling(frame, at + 1);

  test.each([
    ['changed', from1(changed)],
    ['changed in its seal', from1(sealChanged)],
    ['cut', from1(cut)],
    ['without a seal', from1(plain)],
    ['one of the asking side', () => [first.frame ?? Buffer.alloc(64)]],
  ] satisfies [string, Meddling][])('cannot have an answer accepted whose frame is %s', async (_, answers) => {
    const far = await ownerPort();
    expect(await failure(peersTo(await relayTo(far.port, { answers })).ask(command))).toMatchObject({
      name: 'PeerUnreachable',
      mayHaveArrived: true,
    });
    expect(await far.log()).toHaveLength(4);
  });

  test('cannot use recorded frames in another stream', async () => {
    const far = await ownerPort();
    const frames: Buffer[] = [];
    const port = await relayTo(far.port, {
      requests: (frame) => {
        frames.push(Buffer.from(frame));
        return [frame];
      },
    });
    await peersTo(port).ask(command);
    expect(frames.length).toBeGreaterThan(1);
    const again = strangeStream(far.port, clientWire(secret, 'node-b', 'node-a').greeting);
    const ended = new Promise<unknown>((resolve) => again.once('error', resolve));
    for (const frame of frames) again.write(frame);
    expect(await ended).toMatchObject({ code: 16 });
    expect(far.carried).toHaveLength(1);
  });
});

describe('a caller that does not know the secret', () => {
  test.each<readonly [string, Readonly<Record<string, string>>]>([
    ['nothing', {}],
    ['only the secret itself, as nodes of an earlier version', { 'x-cluster-secret': secret.secret ?? '' }],
    ['no random bytes', { 'x-cluster-client': 'node-b' }],
    ['short random bytes', { 'x-cluster-client': 'node-b', 'x-cluster-client-nonce': 'AAAA' }],
    ['no name', { 'x-cluster-client-nonce': Buffer.alloc(32).toString('base64') }],
  ])('is refused if it sends %s', async (_, said) => {
    const far = await ownerPort();
    const greeting = new Metadata();
    for (const [key, value] of Object.entries(said)) greeting.set(key, value);
    const stream = strangeStream(far.port, greeting);
    stream.write(Buffer.alloc(64));
    expect(await new Promise((resolve) => stream.once('error', resolve))).toMatchObject({ code: 16 });
    expect(far.carried).toEqual([]);
  });

  test('has not proved that it is a node before its first frame', async () => {
    let proofs = 0;
    const far = await ownerPort({ onProof: () => void proofs++ });
    const stream = strangeStream(far.port, clientWire(secret, 'node-b', 'node-a').greeting);
    stream.on('error', () => {});
    onTestFinished(() => stream.cancel());
    await new Promise((resolve) => stream.once('metadata', resolve));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(proofs).toBe(0);
    await peersTo(far.port).ask(command);
    expect(proofs).toBe(1);
  });
});

test('streams that a stranger resets before they are handled end nothing', async () => {
  const uncaught = vi.fn();
  process.on('uncaughtException', uncaught);
  onTestFinished(() => void process.off('uncaughtException', uncaught));
  const { port } = await ownerPort();
  await resetFirstStreams(port);
  expect((await peersTo(port).ask(command)).event.payload).toBe(command.payload);
  expect(uncaught).not.toHaveBeenCalled();
});
