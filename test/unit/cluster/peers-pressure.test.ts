import { afterEach, describe, expect, test, vi } from 'vitest';
import { answerBytesMax, unreadMaxMs } from '../../../cluster/peers/incoming-stream.ts';
import { commandText } from '../../../cluster/peers/wire-command.ts';
import { LedgerError } from '../../../src/domain/errors.ts';
import type { AppendEvent, Command } from '../../../src/domain/ledger/command.ts';
import { MemoryBudget } from '../../../src/runtime/limits/memory-budget.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import { append, commandKey } from '../../support/commands.ts';
import { peerWithSecret } from '../../support/peer-attackers.ts';
import { nodePort, openLedgerDirectory, ownerPort, secret } from '../../support/peer-ports.ts';
import { streamWorld } from '../../support/peer-stream-world.ts';
import { startMs } from '../../support/world.ts';

afterEach(() => void vi.useRealTimers());

const mebibyte = 1024 * 1024;

/** A peer that knows the secret and misuses its stream. */
async function faultyPeer(port: number) {
  const { stream, ask, read, answers } = await peerWithSecret(port, secret, 'node-b', 'node-a');
  return { stream, ask: (...commands: readonly Command[]) => ask(commands.map(commandText)), read, answers };
}

describe('a peer that does not read its answers', () => {
  /** A node that answers each command with a large event, and a peer that does not read the answers. */
  async function unread(memory: MemoryBudget, monotonicMs: () => number, sees: () => void = () => {}) {
    const { directory } = await openLedgerDirectory();
    const { event } = await directory.submit(append({ payload: JSON.stringify({ text: 'x'.repeat(200_000) }) }));
    const carryOut = async () => {
      sees();
      return { event, replayed: true };
    };
    const { port, connections } = await nodePort({ carryOut, memory, monotonicMs });
    const { stream, ask } = await faultyPeer(port);
    // Without a first read, grpc-js reads everything into memory.
    stream.pause();
    stream.read(0);
    return { connections, ask: (count: number) => ask(...Array.from({ length: count }, () => append())) };
  }

  test('is disconnected at a bound of waiting answers, and its memory is released', async () => {
    const memory = new MemoryBudget(256 * mebibyte);
    const sizes: number[] = [];
    const add = memory.add.bind(memory);
    memory.add = (kind, bytes) => {
      add(kind, bytes);
      sizes.push(memory.heldBytes('peer'));
    };
    const { connections, ask } = await unread(memory, () => 0);
    // A message has at most 256 commands.
    for (let messages = 0; messages < 2; messages++) ask(200);
    await expect.poll(() => connections.size, { timeout: 5_000 }).toBe(0);
    expect(memory.heldBytes('peer')).toBe(0);
    expect(Math.max(...sizes)).toBeGreaterThan(answerBytesMax / 2);
    expect(Math.max(...sizes)).toBeLessThan(answerBytesMax + mebibyte);
  });

  test('has no further commands read while many answers wait', async () => {
    let asked = 0;
    const { connections, ask } = await unread(
      new MemoryBudget(256 * mebibyte),
      () => 0,
      () => void asked++,
    );
    for (let message = 0; message < 20; message++) {
      ask(20);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    expect(asked).toBeGreaterThan(40);
    expect(asked).toBeLessThan(200);
    // Had more been read, it would be at the bound of waiting answers, and disconnected.
    expect(connections.size).toBe(1);
  });

  test('is disconnected after half a minute', async () => {
    const memory = new MemoryBudget(256 * mebibyte);
    let now = 0;
    const { connections, ask } = await unread(memory, () => now);
    ask(100);
    await expect.poll(() => memory.heldBytes('peer')).toBeGreaterThan(mebibyte);
    const later = () => {
      now += unreadMaxMs;
      return connections.size;
    };
    await expect.poll(later, { timeout: 5_000, interval: 600 }).toBe(0);
    expect(memory.heldBytes('peer')).toBe(0);
  });
});

describe('a node at the bound of its memory', () => {
  test('refuses commands of other nodes as overloaded, and continues', async () => {
    const memory = new MemoryBudget(mebibyte);
    const { port, log } = await ownerPort({ memory });
    const { ask, read, answers } = await faultyPeer(port);
    read();
    memory.add('small', mebibyte - 64);
    ask(append(), append());
    await expect.poll(() => answers.length).toBe(2);
    for (const { result } of answers) expect(result).toMatchObject({ case: 'refusal', value: { code: 'overloaded' } });
    memory.release('small', mebibyte - 64);
    ask(append());
    await expect.poll(() => answers.length).toBe(3);
    expect(answers[2]?.result.case).toBe('outcome');
    expect([(await log()).length, memory.heldBytes()]).toEqual([4, 0]);
  });

  test('counts waiting commands in its budget until they are sent, late, or lost', async () => {
    const memory = new MemoryBudget(3 * mebibyte);
    const { far, stream, pass } = streamWorld(new ManualClock(startMs), memory);
    const ended: string[] = [];
    const ask = () =>
      stream.ask('x'.repeat(mebibyte)).catch((error: unknown) => {
        ended.push(error instanceof LedgerError ? `${error.code} ${error.details.bound}` : 'unreachable');
      });
    for (let asked = 0; asked < 4; asked++) void ask();
    await settled();
    expect([memory.heldBytes('peer'), ended]).toEqual([3 * mebibyte, ['overloaded MEMORY_BUDGET_MIB']]);
    far.accept();
    expect(memory.heldBytes('peer')).toBe(0);
    far.reads = false;
    for (let asked = 0; asked < 3; asked++) void ask();
    await settled();
    expect(memory.heldBytes('peer')).toBeGreaterThan(0);
    await pass(2_600);
    expect([stream.isOver, memory.heldBytes('peer')]).toEqual([true, 0]);
  });

  test.each([
    [{ commandsMax: 2, unsentBytesMax: mebibyte }, 'PEER_COMMANDS_MAX'],
    [{ commandsMax: 100, unsentBytesMax: 5 }, 'PEER_UNSENT_MIB'],
  ])('names the setting that bounds waiting commands: %j', async (bounds, setting) => {
    const { stream } = streamWorld(new ManualClock(startMs), undefined, bounds);
    for (let asked = 0; asked < 2; asked++) stream.ask('{}').catch(() => {});
    await expect(stream.ask('{}')).rejects.toMatchObject({ code: 'overloaded', details: { bound: setting } });
  });
});

describe('the signature of a command of another node', () => {
  const signed = (payload: string, from: Partial<AppendEvent> = {}) =>
    append({
      payload,
      signature: {
        signature: Buffer.alloc(64, 7).toString('base64'),
        keyId: `svc:actor:${append().actorId}#key-1`,
        signedForm: payload,
      },
      ...from,
    });

  test('is verified by the owner, which refuses a command with a wrong one', async () => {
    const checked: Command[] = [];
    const checkSignature = async (one: Command) => {
      checked.push(one);
      if (one.kind === 'append_event' && one.payload === '{"forged":true}')
        throw new LedgerError('invalid_signature', 'The signature does not verify.');
    };
    const { port, log } = await ownerPort({ checkSignature });
    const { ask, read, answers } = await faultyPeer(port);
    read();
    ask(signed('{"forged":true}'));
    await expect.poll(() => answers.length).toBe(1);
    expect(answers[0]?.result).toMatchObject({ case: 'refusal', value: { code: 'invalid_signature' } });
    expect([checked.length, (await log()).length]).toEqual([1, 3]);
  });

  test('does not change the order of the commands for a ledger', async () => {
    const arrived: string[] = [];
    const waits = [30, 1, 10, 0, 5];
    const { port } = await nodePort({
      async carryOut(one) {
        if (one.kind === 'append_event') arrived.push(one.payload);
        throw new LedgerError('unavailable', 'Not here.');
      },
      async checkSignature(one) {
        const ms = one.signature === null ? 0 : waits[Number(one.commandKeys[0]?.id)];
        await new Promise((resolve) => setTimeout(resolve, ms));
        if (ms === 10) throw new LedgerError('invalid_signature', 'Not this one.');
      },
    });
    const { ask, read, answers } = await faultyPeer(port);
    read();
    ask(
      ...waits.map((ms, n) =>
        signed(`{"n":${n}}`, { commandKeys: [commandKey(String(n))], ...(ms === 0 ? { signature: null } : {}) }),
      ),
    );
    await expect.poll(() => answers.length).toBe(5);
    expect(arrived).toEqual(['{"n":0}', '{"n":1}', '{"n":3}', '{"n":4}']);
  });
});
