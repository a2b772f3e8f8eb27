import { Metadata } from '@grpc/grpc-js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { clientWire } from '../../../cluster/peers/wire.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { append, commandKey } from '../../support/commands.ts';
import {
  falseProof,
  listeningPort,
  type Meddling,
  relayTo,
  strangePort,
  strangeStream,
} from '../../support/peer-attackers.ts';
import { failure, nodePort, openLedgerDirectory, peersAt, peersTo, secret } from '../../support/peer-ports.ts';

const notArrived = { name: 'PeerUnreachable', mayHaveArrived: false };
const command = append({ payload: '{"amount":"4711"}', commandKeys: [commandKey('k')] });

/** A node that owns a ledger, and what it was asked for. */
async function owner() {
  const { directory, log } = await openLedgerDirectory();
  const carried: Command[] = [];
  const { port } = await nodePort((one) => {
    carried.push(one);
    return directory.carryOut(one);
  });
  return { port, carried, log };
}

describe('an address that is no node', () => {
  test('learns no secret and no command, whatever it says', async () => {
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

  test('that passes on what a node says to the very node that asks is found', async () => {
    // The proof of the asking node is good, but it is of another node than was asked.
    const carried: Command[] = [];
    const self = await nodePort(
      (one) => {
        carried.push(one);
        return new Promise(() => {});
      },
      secret,
      0,
      () => 0,
      { self: 'node-b' },
    );
    expect(await failure(peersTo(await relayTo(self.port)).ask(command))).toMatchObject(notArrived);
    expect(carried).toEqual([]);
  });

  test('is refused where it is another node than the one that was asked', async () => {
    const carried: Command[] = [];
    const other = await nodePort(
      (one) => {
        carried.push(one);
        return new Promise(() => {});
      },
      secret,
      0,
      () => 0,
      { self: 'node-c' },
    );
    expect(await failure(peersTo(other.port).ask(command))).toMatchObject(notArrived);
    expect(carried).toEqual([]);
  });

  test.each([
    'unix:/tmp/x',
    'unix:///tmp/x',
    'xds:///a',
    'http://a:1',
    'a:b@c:1',
    'a:1/x',
    'a',
    ':1',
    'a:0',
    'a:65536',
    '[::1',
    '[x]:1',
    'a b:1',
    '',
  ])('and no host and port ends nothing: %j', async (address) => {
    const peers = peersAt({ port: 1 }, { addressOf: () => address });
    expect(await failure(peers.ask('node-a', command))).toMatchObject(notArrived);
    peers.forgetGone();
  });
});

describe('who stands between two nodes', () => {
  test('reads neither a command nor an event', async () => {
    const far = await owner();
    const wire = await listeningPort(far.port);
    const { event } = await peersTo(wire.port).ask(command);
    expect(event.payload).toBe(command.payload);
    const heard = wire.heard().toString('latin1');
    expect(heard.length).toBeGreaterThan(500);
    for (const text of [secret.secret ?? '', '4711', event.hash, command.ledgerId]) expect(heard).not.toContain(text);
  });

  test('may pass on what they say', async () => {
    const far = await owner();
    expect(await peersTo(await relayTo(far.port)).ask(command)).toMatchObject({ event: { seq: 3 } });
  });

  const changed: Meddling = (frame, at) => {
    if (at > 0) frame[frame.length - 1] = (frame.at(-1) ?? 0) ^ 1;
    return [frame];
  };
  const sealChanged: Meddling = (frame, at) => {
    if (at > 0) frame[0] = (frame[0] ?? 0) ^ 1;
    return [frame];
  };
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
    ['missing the one before it', left],
    ['cut', cut],
    ['without a seal', plain],
  ])('cannot have a command carried out that is %s', async (_, requests) => {
    const far = await owner();
    expect(await failure(peersTo(await relayTo(far.port, { requests })).ask(command))).toMatchObject({
      name: 'PeerUnreachable',
    });
    expect(far.carried).toEqual([]);
  });

  // The first answer is the one: frames are counted from 1 here.
  const from1 =
    (meddling: Meddling): Meddling =>
    (frame, at) =>
      meddling(frame, at + 1);

  test.each([
    ['changed', from1(changed)],
    ['changed in its seal', from1(sealChanged)],
    ['cut', from1(cut)],
    ['without a seal', from1(plain)],
    ['a frame of the asking side', () => [first.frame ?? Buffer.alloc(64)]],
  ] satisfies [string, Meddling][])('cannot have an answer believed that is %s', async (_, answers) => {
    const far = await owner();
    expect(await failure(peersTo(await relayTo(far.port, { answers })).ask(command))).toMatchObject({
      name: 'PeerUnreachable',
      mayHaveArrived: true,
    });
    expect(await far.log()).toHaveLength(4);
  });

  test('cannot use what they said in another stream', async () => {
    const far = await owner();
    const frames: Buffer[] = [];
    let greeting = new Metadata();
    const port = await relayTo(far.port, {
      requests: (frame) => {
        frames.push(Buffer.from(frame));
        return [frame];
      },
    });
    await peersTo(port).ask(command);
    expect(frames.length).toBeGreaterThan(1);
    greeting = clientWire(secret, 'node-b', 'node-a').greeting;
    const again = strangeStream(far.port, greeting);
    const ended = new Promise<unknown>((resolve) => again.once('error', resolve));
    for (const frame of frames) again.write(frame);
    expect(await ended).toMatchObject({ code: 16 });
    expect(far.carried).toHaveLength(1);
  });
});

describe('who calls a node without its secret', () => {
  test.each<readonly [string, Readonly<Record<string, string>>]>([
    ['nothing', {}],
    ['the secret itself, as nodes of the version before do', { 'x-cluster-secret': secret.secret ?? '' }],
    ['no random bytes', { 'x-cluster-client': 'node-b' }],
    ['short random bytes', { 'x-cluster-client': 'node-b', 'x-cluster-client-nonce': 'AAAA' }],
    ['no name', { 'x-cluster-client-nonce': Buffer.alloc(32).toString('base64') }],
  ])('and says %s is refused', async (_, said) => {
    const far = await owner();
    const greeting = new Metadata();
    for (const [key, value] of Object.entries(said)) greeting.set(key, value);
    const stream = strangeStream(far.port, greeting);
    stream.write(Buffer.alloc(64));
    expect(await new Promise((resolve) => stream.once('error', resolve))).toMatchObject({ code: 16 });
    expect(far.carried).toEqual([]);
  });

  test('and says nothing more has shown nothing: its connection is no node’s', async () => {
    let proofs = 0;
    const { directory } = await openLedgerDirectory();
    const far = await nodePort(
      (one) => directory.carryOut(one),
      secret,
      0,
      () => 0,
      {},
      () => void proofs++,
    );
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
