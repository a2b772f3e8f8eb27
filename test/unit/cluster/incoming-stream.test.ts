import { EventEmitter } from 'node:events';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { Metadata } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { HeadSubscribers } from '../../../cluster/peers/head-subscribers.ts';
import {
  answerBytesMax,
  type ExchangeCall,
  type IncomingParts,
  IncomingStream,
} from '../../../cluster/peers/incoming-stream.ts';
import { serverWire } from '../../../cluster/peers/wire.ts';
import { commandText } from '../../../cluster/peers/wire-command.ts';
import { LedgerError } from '../../../src/domain/errors.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { ExchangeRequestSchema } from '../../../src/gen/svc/cluster/v1/peers_pb.ts';
import { limits } from '../../../src/runtime/limits/limits.ts';
import { MemoryBudget } from '../../../src/runtime/limits/memory-budget.ts';
import { settled } from '../../support/clock.ts';
import { append } from '../../support/commands.ts';
import { startMs } from '../../support/world.ts';

const mebibyte = 1024 * 1024;
/** With certificates, frames are plain. */
const certified = {
  tls: { ca: Buffer.alloc(0), cert: Buffer.alloc(0), key: Buffer.alloc(0) },
  secret: null,
};

/** The grpc-js call of a stream whose other side takes no answer. */
class UnreadCall extends EventEmitter {
  write = () => false;
  end = () => {};
  pause = () => {};
  resume = () => {};
  isPaused = () => false;
}

/** A stream that another node has opened, and `send`: what that node sends. */
function openedStream(parts: Partial<IncomingParts>) {
  const call = new UnreadCall();
  const wire = serverWire(certified, 'node-a', new Metadata());
  if (wire === null) throw new Error('not a node');
  let hangUps = 0;
  const connection = { proved: () => {}, hangUp: () => void hangUps++ };
  const whole: IncomingParts = {
    carryOut: () => new Promise(() => {}),
    checkSignature: async () => {},
    batchesConfirmed: () => 0,
    memory: new MemoryBudget(mebibyte),
    monotonicMs: () => 0,
    now: () => startMs,
    subscribers: new HeadSubscribers(),
    unreadable: () => {},
    failed: () => {},
    ...parts,
  };
  new IncomingStream(whole, call as unknown as ExchangeCall, wire, connection);
  onTestFinished(() => void call.emit('cancelled'));
  const send = (request: MessageInitShape<typeof ExchangeRequestSchema>) =>
    call.emit('data', Buffer.from(toBinary(ExchangeRequestSchema, create(ExchangeRequestSchema, request))));
  let id = 0;
  const ask = (...commands: readonly Command[]) =>
    send({ asks: commands.map((command) => ({ id: ++id, command: commandText(command) })) });
  return { ask, hangUps: () => hangUps };
}

test('a stream that ends in the middle of a message takes no more commands and no more memory of the budget', async () => {
  const memory = new MemoryBudget(answerBytesMax + mebibyte);
  let carried = 0;
  const carryOut = async () => {
    carried += 1;
    // With the texts beside it, one mebibyte is counted.
    throw new LedgerError('unavailable', 'x'.repeat(mebibyte - 66));
  };
  const { ask, hangUps } = openedStream({ memory, carryOut });
  for (let waiting = 0; waiting < answerBytesMax / mebibyte; waiting++) ask(append());
  await settled();
  expect(memory.heldBytes('peer')).toBe(answerBytesMax);
  expect(carried).toBe(32);
  // The first command is refused at once, and its answer is one too many.
  memory.add('small', 3 * mebibyte);
  ask(append(), append(), append());
  expect(hangUps()).toBe(1);
  await settled();
  expect(carried).toBe(32);
  expect(memory.heldBytes('peer')).toBe(0);
});

const longestMs = limits.callTimeoutMs;

test.each([
  ['that never comes', Number.MAX_SAFE_INTEGER, startMs + longestMs],
  ['beyond that of the longest call', startMs + longestMs + 1, startMs + longestMs],
  ['of the longest call', startMs + longestMs, startMs + longestMs],
  ['of a short call', startMs + 100, startMs + 100],
  ['that has passed', 0, 0],
])('a command of another node with a deadline %s waits no longer than the longest call', async (_, sent, deadline) => {
  const carried: Command[] = [];
  const carryOut = (command: Command) => {
    carried.push(command);
    return new Promise<never>(() => {});
  };
  const command = append({ deadline: sent });
  openedStream({ carryOut }).ask(command);
  await settled();
  expect(carried).toEqual([{ ...command, deadline }]);
});
