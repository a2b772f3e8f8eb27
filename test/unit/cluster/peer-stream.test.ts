import { afterEach, expect, test, vi } from 'vitest';
import { errorAnswer } from '../../../cluster/peers/answers.ts';
import { budgetMs } from '../../../cluster/peers/grpc-peers.ts';
import { defaultPeerBounds } from '../../../cluster/peers/peer-stream.ts';
import { LedgerError } from '../../../src/domain/errors.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import { streamWorld } from '../../support/peer-stream-world.ts';
import { startMs } from '../../support/world.ts';

afterEach(() => void vi.useRealTimers());

const mebibyte = 'x'.repeat(1024 * 1024);
const refused = new LedgerError('permission_denied', 'Said by the far node.');

/** A stream to a node, and how its commands ended. */
function world() {
  const { far, stream, pass } = streamWorld(new ManualClock(startMs));
  const ended: string[] = [];
  const ask = (text: string) => {
    stream.ask(text).catch((error: unknown) => {
      ended.push(error instanceof LedgerError ? error.code : 'unreachable');
    });
  };
  const fill = () => {
    for (let asked = 0; asked < 64; asked++) ask(mebibyte);
  };
  return { far, stream, pass, ask, fill, ended };
}

test('at most 64 MiB of commands wait to be sent to a node, however few they are', async () => {
  const { stream, ask, fill, ended } = world();
  expect(defaultPeerBounds.unsentBytesMax).toBe(64 * mebibyte.length);
  fill();
  await settled();
  expect(ended).toEqual([]);
  ask('{}');
  await settled();
  expect(ended).toEqual(['overloaded']);
  expect(stream.waiting).toBe(64);
});

test('the bound of waiting commands counts bytes, not characters', async () => {
  const { ask, ended } = world();
  for (let asked = 0; asked < 32; asked++) ask('é'.repeat(mebibyte.length));
  await settled();
  expect(ended).toEqual([]);
  ask('é');
  await settled();
  expect(ended).toEqual(['overloaded']);
});

test('a command does not count any more once it is sent', async () => {
  const { far, stream, ask, fill, ended } = world();
  fill();
  far.accept();
  expect(far.asks).toHaveLength(64);
  fill();
  await settled();
  expect(ended).toEqual([]);
  expect(far.asks).toHaveLength(128);
  ask('{}');
  await settled();
  expect(ended).toEqual([]);
  expect(stream.waiting).toBe(129);
});

test('a command does not count any more once it is given up unsent', async () => {
  const { far, pass, ask, fill, ended } = world();
  far.reads = false;
  far.accept();
  ask('{}');
  await settled();
  const [sent] = far.asks;
  if (sent === undefined) throw new Error('nothing was sent');
  fill();
  // Other commands are answered, so that the stream stays.
  await pass(12_100, () => far.answer(errorAnswer(sent.id, refused)));
  expect(ended).toEqual(['permission_denied', ...Array(64).fill('unreachable')]);
  fill();
  await settled();
  expect(ended).toHaveLength(65);
  ask('{}');
  await settled();
  expect(ended.at(-1)).toBe('overloaded');
});

test('an answer to an unsent command is ignored', async () => {
  const { far, stream, ask, fill, ended } = world();
  fill();
  for (let id = 1; id <= 64; id++) far.answer(errorAnswer(id, refused));
  ask('{}');
  await settled();
  expect(ended).toEqual(['overloaded']);
  expect(stream.waiting).toBe(64);
});

test('a command that is too large for a message is not sent, and the stream stays', async () => {
  const { stream, ask, ended } = world();
  ask('{}');
  const tooLarge = stream.ask('x'.repeat(4 * mebibyte.length)).catch((error: unknown) => error);
  expect(await tooLarge).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: false });
  await settled();
  expect([stream.waiting, ended]).toEqual([1, []]);
});

test('a stream that is not accepted in time ends, even without a command', async () => {
  const { far, stream, pass } = streamWorld(new ManualClock(startMs));
  await pass(budgetMs - 100);
  expect(stream.isOver).toBe(false);
  await pass(200);
  expect([stream.isOver, far.cancelled]).toEqual([true, true]);
});

test('an accepted stream stays without commands', async () => {
  const { far, stream, pass } = streamWorld(new ManualClock(startMs));
  expect(stream.isAccepted).toBe(false);
  far.accept();
  expect(stream.isAccepted).toBe(true);
  await pass(4 * budgetMs);
  expect(stream.isOver).toBe(false);
});
