import { describe, expect, test } from 'vitest';
import { mailboxBytesMax, mailboxCommandsMax } from '../../../src/actors/bounds.ts';
import { Mailbox } from '../../../src/actors/inbox/mailbox.ts';
import { PendingCommand } from '../../../src/actors/inbox/pending-command.ts';
import type { Command, Lane } from '../../../src/domain/ledger/command.ts';
import { settled } from '../../support/clock.ts';
import { append, commandKey, stranger } from '../../support/commands.ts';
import { beforeCalls, codeOf, codesOf, faultsOf, openOrder, rig, startMs } from '../../support/world.ts';

/** An open ledger; appends wait while `held` is set. */
async function opened() {
  let release = () => {};
  let held: Promise<void> | null = null;
  const world = rig({ wrap: (memory) => beforeCalls(memory, { append: () => held }) });
  const actor = world.newActor();
  await openOrder(actor);
  const hold = () => {
    held = new Promise((resolve) => {
      release = () => {
        held = null;
        resolve();
      };
    });
  };
  return { ...world, actor, hold, release: () => release() };
}

function lane(index: number, previous: number | null, id = 'lane'): Lane {
  return { id, index, previous };
}

function inLane(index: number, previous: number | null, from: Partial<Command> = {}): Command {
  return append({ payload: `{"index":${index}}`, lane: lane(index, previous), ...(from as object) });
}

describe('commands of one lane', () => {
  test('are written in their order', async () => {
    const { actor, log } = await opened();
    await Promise.all([inLane(0, null), inLane(1, 0), inLane(2, 1)].map((one) => actor.submit(one)));
    expect((await log()).slice(3).map(({ payload }) => payload)).toEqual(['{"index":0}', '{"index":1}', '{"index":2}']);
  });

  test('a refusal that no retry mends does not stop those behind it', async () => {
    const { actor } = await opened();
    const commands = [inLane(0, null), inLane(1, 0, { actorId: stranger }), inLane(2, 1)];
    const codes = await codesOf(actor, ...commands);
    expect(codes).toEqual(['carried out', 'not_found', 'carried out']);
  });

  test('nothing behind a refused command is written before its refusal is answered: its deadline may pass first', async () => {
    const { actor, hold, release, clock, log } = await opened();
    hold();
    const busy = codeOf(actor.submit(append()));
    await settled();
    const inOrder = [
      inLane(0, null, { actorId: stranger, deadline: startMs + 1_000 }),
      inLane(1, 0),
      append({ payload: '{"other":1}' }),
    ].map((one) => codeOf(actor.submit(one)));
    release();
    hold();
    await settled();
    await clock.advance(1_100);
    release();
    expect(await busy).toBe('carried out');
    expect(await Promise.all(inOrder)).toEqual(['unavailable', 'unavailable', 'carried out']);
    expect((await log()).slice(4).map(({ payload }) => payload)).toEqual(['{"other":1}']);
  });

  test('behind one that another node may have had, and that is refused here, nothing is written: its sender sends it again', async () => {
    const { actor, hold, release, log } = await opened();
    hold();
    const busy = codeOf(actor.submit(append()));
    await settled();
    const inOrder = [
      inLane(0, null),
      inLane(1, 0, { actorId: stranger, resubmitted: true }),
      inLane(2, 1, { resubmitted: true }),
      append({ lane: lane(0, null, 'other') }),
    ].map((one) => codeOf(actor.submit(one)));
    release();
    expect(await busy).toBe('carried out');
    expect(await Promise.all(inOrder)).toEqual(['carried out', 'outcome_unknown', 'unavailable', 'carried out']);
    expect(await codeOf(actor.submit(inLane(3, 2)))).toBe('unavailable');
    expect(await log()).toHaveLength(6);
    expect(await codeOf(actor.submit(inLane(4, null)))).toBe('carried out');
  });

  test('behind one that waited too long nothing is written; another lane goes on', async () => {
    const { actor, hold, release, clock, log } = await opened();
    hold();
    const first = codeOf(actor.submit(inLane(0, null)));
    await settled();
    const waiting = [
      inLane(1, 0, { deadline: startMs + 1_000 }),
      inLane(2, 1),
      append({ payload: '{"other":1}', lane: lane(0, null, 'other') }),
    ].map((one) => codeOf(actor.submit(one)));
    await clock.advance(1_100);
    release();
    expect(await first).toBe('carried out');
    expect(await Promise.all(waiting)).toEqual(['unavailable', 'unavailable', 'carried out']);
    expect(await codeOf(actor.submit(inLane(3, 2)))).toBe('unavailable');
    expect((await log()).slice(3).map(({ payload }) => payload)).toEqual(['{"index":0}', '{"other":1}']);
  });

  test('behind one whose outcome is unknown nothing new is taken', async () => {
    const { actor, hold, release, clock } = await opened();
    hold();
    const first = codeOf(actor.submit(inLane(0, null, { deadline: startMs + 1_000 })));
    await settled();
    const waiting = codeOf(actor.submit(inLane(1, 0)));
    await clock.advance(1_100);
    expect(await first).toBe('outcome_unknown');
    const next = codeOf(actor.submit(inLane(2, 1)));
    release();
    expect(await Promise.all([waiting, next])).toEqual(['unavailable', 'unavailable']);
  });

  test('nothing is written behind a command whose key is in flight, even in the same tick', async () => {
    const { actor, log } = await opened();
    const marked = { commandKeys: [commandKey('k')] };
    const codes = await codesOf(actor, append(marked), inLane(0, null, marked), inLane(1, 0), inLane(2, null));
    expect(codes).toEqual(['carried out', 'idempotency_in_progress', 'unavailable', 'carried out']);
    expect(await log()).toHaveLength(5);
  });

  test('so it is where another node may have had it', async () => {
    const { actor, log } = await opened();
    const marked = { commandKeys: [commandKey('k')] };
    const codes = await codesOf(actor, append(marked), inLane(0, null, { ...marked, resubmitted: true }), inLane(1, 0));
    expect(codes).toEqual(['carried out', 'idempotency_in_progress', 'unavailable']);
    expect(await log()).toHaveLength(4);
  });

  test('one whose forerunner this actor never saw is refused: it was sent to another', async () => {
    const { actor, ...world } = await opened();
    await actor.submit(inLane(0, null));
    expect(await codeOf(world.newActor().submit(inLane(1, 0)))).toBe('unavailable');
    expect(await codeOf(actor.submit(inLane(5, 4)))).toBe('unavailable');
    expect(await codeOf(world.newActor().submit(inLane(1, null)))).toBe('carried out');
  });

  test('behind one that waited too long nothing is written, though the ledger has forgotten the lane', async () => {
    const { actor, hold, release, clock, log } = await opened();
    hold();
    const busy = codeOf(actor.submit(append()));
    await settled();
    const late = codeOf(actor.submit(inLane(0, null, { deadline: startMs + 1_000 })));
    const behind = codeOf(actor.submit(inLane(1, 0)));
    const others = Array.from({ length: 1_024 }, (_, n) => append({ lane: lane(0, null, `other ${n}`) }));
    const written = others.map((one) => codeOf(actor.submit(one)));
    await clock.advance(1_100);
    release();
    expect(await busy).toBe('carried out');
    expect(await Promise.all([late, behind])).toEqual(['unavailable', 'unavailable']);
    expect(new Set(await Promise.all(written))).toEqual(new Set(['carried out']));
    expect(await log()).toHaveLength(3 + 1 + others.length);
  });

  test('a lane that broke goes on once its sender has nothing open', async () => {
    const { actor, clock } = await opened();
    const late = inLane(0, null, { deadline: clock.now() });
    expect(await codeOf(actor.submit(late))).toBe('unavailable');
    expect(await codeOf(actor.submit(inLane(1, 0)))).toBe('unavailable');
    expect(await codeOf(actor.submit(inLane(2, null)))).toBe('carried out');
    expect(await codeOf(actor.submit(inLane(3, 2)))).toBe('carried out');
  });
});

describe('the mailbox is bounded', () => {
  test('by commands: one too many is overloaded, nothing of it is written, and its lane breaks', async () => {
    const { actor, hold, release, log } = await opened();
    hold();
    const first = codeOf(actor.submit(append()));
    await settled();
    const waiting = Array.from({ length: mailboxCommandsMax }, () => codeOf(actor.submit(append())));
    expect(actor.waiting).toBe(mailboxCommandsMax);
    expect(await codeOf(actor.submit(inLane(0, null)))).toBe('overloaded');
    expect(await codeOf(actor.submit(inLane(1, 0)))).toBe('unavailable');
    expect(await codeOf(actor.submit(append({ commandKeys: [commandKey('k')] })))).toBe('overloaded');
    release();
    expect(new Set(await Promise.all([first, ...waiting]))).toEqual(new Set(['carried out']));
    expect(await codeOf(actor.submit(append({ commandKeys: [commandKey('k')] })))).toBe('carried out');
    expect(faultsOf(await log())).toEqual([]);
    expect(await log()).toHaveLength(3 + 1 + mailboxCommandsMax + 1);
  });

  test('by bytes', () => {
    const box = new Mailbox({ commandsMax: 10, bytesMax: 10_000 });
    const pending = (bytes: number) => new PendingCommand(append({ payload: 'a'.repeat(bytes) }), noAnswer, noAnswer);
    box.push(pending(4_000));
    box.push(pending(2_000));
    expect(() => box.push(pending(4_000))).toThrow(expect.objectContaining({ code: 'overloaded' }));
    box.push(pending(100));
    expect(box.take(1, 10_000)).toHaveLength(1);
    box.push(pending(4_000));
    expect(box.drain()).toHaveLength(3);
    expect(box.size).toBe(0);
  });

  test('commands come out in their order, however they are taken', () => {
    const box = new Mailbox({ commandsMax: 10_000, bytesMax: mailboxBytesMax });
    const commands = Array.from({ length: 5_000 }, () => new PendingCommand(append(), noAnswer, noAnswer));
    for (const pending of commands) box.push(pending);
    expect([...box.waiting()]).toEqual(commands);
    const taken = [];
    for (let count = 1; box.size > 0; count++) taken.push(...box.take(count, Number.POSITIVE_INFINITY));
    expect(taken.every((pending, index) => pending === commands[index])).toBe(true);
    expect(taken).toHaveLength(5_000);
    expect(box.take(1, 1)).toEqual([]);
  });

  test('a pending larger than the mailbox is taken where nothing else waits', () => {
    const box = new Mailbox({ commandsMax: 10, bytesMax: 10 });
    box.push(new PendingCommand(append(), noAnswer, noAnswer));
    expect(box.size).toBe(1);
  });
});

function noAnswer(): void {}
