import { afterEach, describe, expect, test, vi } from 'vitest';
import { errorAnswer, outcomeAnswer } from '../../../cluster/peers/answers.ts';
import { commandText } from '../../../cluster/peers/wire-command.ts';
import { NotOwner, PeerUnreachable } from '../../../src/actors/routing/peers.ts';
import { type ErrorCode, LedgerError } from '../../../src/domain/errors.ts';
import { settled } from '../../support/clock.ts';
import { append, createMaster, openLedger } from '../../support/commands.ts';
import { streamWorld } from '../../support/peer-stream-world.ts';
import { faultsOf, rig, startMs } from '../../support/world.ts';

afterEach(() => void vi.useRealTimers());

/** This node, and a far node that owns the ledger's shard. The far node never answers the wanted command. */
async function world() {
  const before = rig();
  const { clock, data, log } = before;
  const directory = before.directory();
  await directory.submit(openLedger());
  await directory.submit(createMaster());
  const [written] = await log();
  if (written === undefined) throw new Error('nothing was written');

  const { far, stream, ownBatches, pass } = streamWorld(clock);
  far.accept();
  const placement = {
    acquire: async () => ({ held: false, owner: 'node-a' }) as const,
    renew: async () => new Set<number>(),
    release: async () => {},
    locate: async () => 'node-a',
  };
  const here = rig({ clock, data }).directory({
    self: 'node-b',
    placement,
    peers: { ask: (_node, command) => stream.ask(commandText(command)) },
  });
  const wanted = '{"wanted":true}';
  const submit = () => tracked(here.submit(append({ payload: wanted, deadline: startMs + 10_000 })));
  /** Sends another command, and answers all commands but the wanted one. */
  const others = (answer: (id: number) => Parameters<typeof far.answer>[0]) => () => {
    stream.ask(commandText(append())).catch(() => {});
    for (const { id, command } of far.asks.splice(0)) if (!command.includes('wanted')) far.answer(answer(id));
  };
  const carriesOut = others((id) => outcomeAnswer(id, { event: written, replayed: false }));
  const fails = (error: unknown) => others((id) => errorAnswer(id, error));
  return { clock, log, far, stream, ownBatches, pass, submit, carriesOut, fails };
}

/** The result of a promise so far. */
function tracked<T>(outcome: Promise<T>) {
  const seen: { value?: T; error?: unknown } = {};
  outcome.then(
    (value) => {
      seen.value = value;
    },
    (error: unknown) => {
      seen.error = error;
    },
  );
  return seen;
}

const saying = (code: ErrorCode) => new LedgerError(code, 'Said by the far node.');

describe('an owner that runs no command', () => {
  test.each([
    ['unavailable', saying('unavailable')],
    ['overloaded', saying('overloaded')],
    ['outcome_unknown', saying('outcome_unknown')],
    ['idempotency_in_progress', saying('idempotency_in_progress')],
    ['internal', saying('internal')],
    ['not_owner', new NotOwner(null)],
  ])('and answers only %s is given up after 2.5 s, and the command runs here', async (_, error) => {
    const { log, far, pass, submit, fails } = await world();
    const outcome = submit();
    await pass(2_400, fails(error));
    expect(outcome).toEqual({});
    await pass(200, fails(error));
    expect(outcome).toMatchObject({ value: { event: { seq: 3 } } });
    expect(faultsOf(await log())).toEqual([]);
    expect(far.cancelled).toBe(true);
  });

  test('is given up after 2.5 s while batches of this node are only slow', async () => {
    const { ownBatches, pass, submit } = await world();
    const outcome = submit();
    ownBatches.running = 1;
    let passed = 0;
    await pass(2_600, () => {
      passed += 200;
      if (passed % 800 === 0) ownBatches.confirmed += 1;
    });
    expect(outcome).toMatchObject({ value: { event: { seq: 3 } } });
  });

  test('any more is given up 2.5 s after the last one', async () => {
    const { pass, submit, carriesOut, fails } = await world();
    const outcome = submit();
    await pass(1_200, carriesOut);
    await pass(2_200, fails(saying('unavailable')));
    expect(outcome).toEqual({});
    await pass(400, fails(saying('unavailable')));
    expect(outcome).toMatchObject({ value: { event: { seq: 3 } } });
  });
});

describe('an owner that runs no command while the store confirms nothing to this node either', () => {
  test.each([
    ['that just got a command', 0],
    ['that got no command for a while', 1_600],
  ])('and %s is not given up: once the store continues, it has time to show work', async (_, idleMs) => {
    const { log, far, ownBatches, pass, submit } = await world();
    await pass(idleMs);
    const outcome = submit();
    ownBatches.running = 1;
    await pass(4_000);
    ownBatches.confirmed += 1;
    ownBatches.running = 0;
    await pass(1_200);
    expect(outcome).toEqual({});
    far.works();
    await pass(2_200);
    expect(outcome).toEqual({});
    expect(await log()).toHaveLength(3);
    expect(far.cancelled).toBe(false);
    await pass(400);
    expect(outcome).toMatchObject({ value: { event: { seq: 3 } } });
  });

  test('is given up 1.5 s after the store continues, if it shows no work', async () => {
    const { log, far, ownBatches, pass, submit } = await world();
    const outcome = submit();
    ownBatches.running = 1;
    await pass(6_000);
    const storeGoesOn = () => {
      ownBatches.confirmed += 1;
    };
    await pass(1_300, storeGoesOn);
    expect(outcome).toEqual({});
    await pass(400, storeGoesOn);
    expect(outcome).toMatchObject({ value: { event: { seq: 3 } } });
    expect(faultsOf(await log())).toEqual([]);
    expect(far.cancelled).toBe(true);
  });

  test('is waited for no longer than callers wait, and later commands go on waiting', async () => {
    const { log, far, ownBatches, pass, submit } = await world();
    const outcome = submit();
    ownBatches.running = 1;
    await pass(11_000);
    const later = submit();
    await pass(1_100);
    expect(outcome.error).toMatchObject({ code: 'outcome_unknown' });
    expect(later).toEqual({});
    expect(await log()).toHaveLength(3);
    expect(far.cancelled).toBe(false);
  });
});

describe('an owner that runs other commands', () => {
  test('is waited for as long as callers wait, and nothing is written here', async () => {
    const { log, far, pass, submit, carriesOut } = await world();
    const outcome = submit();
    await pass(11_900, carriesOut);
    expect(outcome).toEqual({});
    await pass(200, carriesOut);
    expect(outcome.error).toMatchObject({ code: 'outcome_unknown' });
    expect(await log()).toHaveLength(3);
    expect(far.cancelled).toBe(false);
  });

  test('of other nodes is given up 2.5 s after it last reported work', async () => {
    const { log, far, pass, submit } = await world();
    const outcome = submit();
    await pass(5_000, () => far.works());
    expect(outcome).toEqual({});
    await pass(2_200);
    expect(outcome).toEqual({});
    await pass(400);
    expect(outcome).toMatchObject({ value: { event: { seq: 3 } } });
    expect(faultsOf(await log())).toEqual([]);
  });

  test('of other nodes is not waited for longer than callers wait', async () => {
    const { log, far, pass, submit } = await world();
    const outcome = submit();
    await pass(12_100, () => far.works());
    expect(outcome.error).toMatchObject({ code: 'outcome_unknown' });
    expect(await log()).toHaveLength(3);
    expect(far.cancelled).toBe(false);
  });

  test('with final refusals is waited for too', async () => {
    const { pass, submit, fails } = await world();
    const outcome = submit();
    await pass(9_900, fails(saying('permission_denied')));
    expect(outcome).toEqual({});
  });

  test('too late for their callers is waited for too', async () => {
    const { far, stream, pass, carriesOut, log } = await world();
    const late = tracked(stream.ask('{"wanted":1}'));
    await settled();
    const [ask] = far.asks;
    const [event] = await log();
    if (ask === undefined || event === undefined) throw new Error('nothing was asked');
    await pass(12_100, carriesOut);
    expect(late.error).toBeInstanceOf(PeerUnreachable);
    const behind = tracked(stream.ask('{"wanted":2}'));
    await pass(2_000);
    far.answer(outcomeAnswer(ask.id, { event, replayed: false }));
    await pass(1_000);
    expect(behind).toEqual({});
    await pass(1_600);
    expect(behind.error).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: true });
  });
});
