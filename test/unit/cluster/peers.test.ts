import { describe, expect, test } from 'vitest';
import { NotOwner } from '../../../src/actors/routing/peers.ts';
import { LedgerError } from '../../../src/domain/errors.ts';
import { append, commandKey, stranger } from '../../support/commands.ts';
import { failure, nodePort, openLedgerDirectory, peersTo, secret } from '../../support/peer-ports.ts';

describe('a command that crosses to another node', () => {
  test('comes back as the very event that was written', async () => {
    const { directory, log } = await openLedgerDirectory();
    const far = await nodePort((command) => directory.carryOut(command));
    const { ask, results } = peersTo(far.port);
    const command = append({ payload: '{"text":"\u2028 é \\"quoted\\""}', commandKeys: [commandKey('k')] });
    const outcome = await ask(command);
    expect(outcome).toEqual({ event: (await log()).at(-1), replayed: false });
    expect(outcome.event.payload).toBe(command.payload);
    expect((await ask(command)).replayed).toBe(true);
    expect(results).toEqual(['answered', 'answered']);
  });

  test('keeps its refusal: code, message and details', async () => {
    const { directory } = await openLedgerDirectory();
    const far = await nodePort((command) => directory.carryOut(command));
    const { ask } = peersTo(far.port);
    const here = await failure(directory.submit(append({ actorId: stranger })));
    expect(await failure(ask(append({ actorId: stranger })))).toEqual(here);
    const closed = await nodePort(async () => {
      throw new LedgerError('signing_key_revoked', 'The signing key is revoked.', { revoked_at: 'x', deep: [1] });
    });
    const there = await failure(peersTo(closed.port).ask(append()));
    expect(there).toMatchObject({ code: 'signing_key_revoked', details: { revoked_at: 'x', deep: [1] } });
  });

  test('learns which node owns its shard', async () => {
    const owners = ['node-b', null];
    const far = await nodePort(async () => {
      throw new NotOwner(owners.shift() ?? null);
    });
    const { ask, results } = peersTo(far.port);
    expect(await failure(ask(append()))).toMatchObject({ name: 'NotOwner', owner: 'node-b' });
    expect(await failure(ask(append()))).toMatchObject({ name: 'NotOwner', owner: null });
    expect(results).toEqual(['not_owner', 'not_owner']);
  });

  test('says nothing of what went wrong inside', async () => {
    const far = await nodePort(async () => {
      throw new Error('password of the database');
    });
    const error = await failure(peersTo(far.port).ask(append()));
    expect(error).toMatchObject({ code: 'internal' });
    expect(String((error as Error).message)).not.toMatch(/password/);
  });

  test('stays behind those sent before it, however many', async () => {
    const { directory, log } = await openLedgerDirectory();
    const arrived: string[] = [];
    const far = await nodePort((command) => {
      if (command.kind === 'append_event') arrived.push(command.payload);
      return directory.carryOut(command);
    });
    const { ask } = peersTo(far.port, secret, 15_000);
    const wanted = Array.from({ length: 2_000 }, (_, n) => `{"n":${n}}`);
    const lane = (index: number) => ({ id: 'l', index, previous: index === 0 ? null : index - 1 });
    await Promise.all(wanted.map((payload, index) => ask(append({ payload, lane: lane(index) }))));
    expect(arrived).toEqual(wanted);
    expect((await log()).slice(3).map(({ payload }) => payload)).toEqual(wanted);
  });

  test('may be as large as events are', async () => {
    const { directory } = await openLedgerDirectory();
    const far = await nodePort((command) => directory.carryOut(command));
    const payload = JSON.stringify({ text: '"'.repeat(300_000) });
    const { ask } = peersTo(far.port, secret, 15_000);
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => ask(append({ payload }))));
    expect(outcomes.every(({ event }) => event.payload === payload)).toBe(true);
  });
});
