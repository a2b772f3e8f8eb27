import { describe, expect, test } from 'vitest';
import type { CommandOutcome } from '../../../src/actors/inbox/outcome.ts';
import { outcomeFault } from '../../../src/actors/routing/peer-outcome-check.ts';
import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { sealEvent } from '../../../src/domain/ledger/seal.ts';
import {
  append,
  buyer,
  closeLedger,
  closeMaster,
  commandKey,
  createMaster,
  grant,
  openLedger,
  revoke,
  siblingId,
  signature,
  uuid,
} from '../../support/commands.ts';
import { failure, nodePort, openLedgerDirectory, peersTo } from '../../support/peer-ports.ts';
import { authority, rig } from '../../support/world.ts';

const command = append({ payload: '{"amount":1}', commandKeys: [commandKey('k')] });

/** The event with a change, sealed as an owner seals it. */
function otherwise(event: LedgerEvent, change: Partial<LedgerEvent>): LedgerEvent {
  const draft = { ...event, masterId: event.master?.id ?? null, ...change };
  return sealEvent(draft, { ...event, ...change }, authority).event;
}

/** Wrong answers of a node that knows the secret. */
const lies: readonly (readonly [string, (event: LedgerEvent) => LedgerEvent])[] = [
  ['of another ledger', (event) => otherwise(event, { ledgerId: uuid(2) })],
  ['of another type', (event) => otherwise(event, { eventType: 'OTHER' })],
  ['of another actor', (event) => otherwise(event, { actorId: buyer })],
  ['with another payload', (event) => otherwise(event, { payload: '{"amount":2}' })],
  ['with another cause', (event) => otherwise(event, { causedByHash: 'c'.repeat(64) })],
  ['of another master', (event) => otherwise(event, { master: { id: siblingId, prevHash: '', seq: 1 } })],
  ['of no master', (event) => otherwise(event, { master: null })],
  ['with a signature', (event) => otherwise(event, { actorSig: signature('k').signature, signingKeyId: 'k' })],
  ['of another command', (event) => otherwise(event, { commands: [commandKey('other')] })],
  ['of another use of its key', (event) => otherwise(event, { commands: [commandKey('k', 'asks another')] })],
  ['of no command', (event) => otherwise(event, { commands: [] })],
  ['with another hash', (event) => ({ ...event, hash: 'a'.repeat(64) })],
  ['with another payload under its hash', (event) => ({ ...event, payload: '{"amount":3}' })],
];

describe('the event in an owner’s answer', () => {
  test.each(lies)(
    'is not accepted if it is an event %s: the retry finds the written event in the log',
    async (_, lie) => {
      const { directory, log } = await openLedgerDirectory();
      const far = await nodePort({
        carryOut: async (one) => {
          const outcome = await directory.carryOut(one);
          return { ...outcome, event: lie(outcome.event) };
        },
      });
      const { ask, results } = peersTo(far.port);
      expect(await failure(ask(command))).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: true });
      expect(results).toEqual(['wrong_answer']);
      const again = await directory.submit({ ...command, resubmitted: true });
      expect(again).toEqual({ event: (await log())[3], replayed: true });
    },
  );

  test('is not accepted as a replay if it is of another command', async () => {
    const { directory, log } = await openLedgerDirectory();
    await directory.submit(append({ commandKeys: [commandKey('other')] }));
    const [, , , event] = await log();
    if (event === undefined) throw new Error('nothing was written');
    const far = await nodePort({ carryOut: async () => ({ event, replayed: true }) });
    expect(await failure(peersTo(far.port).ask(command))).toMatchObject({ mayHaveArrived: true });
  });

  test('is accepted if it fits the command, for every kind of command', async () => {
    const directory = rig().directory();
    const named: readonly Command[] = [
      openLedger(),
      createMaster({ commandKeys: [commandKey('1')] }),
      append({ commandKeys: [commandKey('2')], payload: '{"a":1}' }),
      grant({ commandKeys: [commandKey('3')] }),
      grant({
        commandKeys: [commandKey('4')],
        role: 'ACCESS',
        access: 'read',
        expiresAt: '2099-01-01T00:00:00.000Z',
        signatureRule: 'optional',
      }),
      revoke({ commandKeys: [commandKey('5')] }),
      closeMaster({ commandKeys: [commandKey('6')] }),
      closeLedger({ commandKeys: [commandKey('7')] }),
    ];
    for (const one of named) {
      const outcome = await directory.submit(one);
      expect(outcomeFault(one, outcome), one.kind).toBeNull();
      if (one.kind === 'open_ledger') continue;
      const replay: CommandOutcome = await directory.submit(one);
      expect([replay.replayed, outcomeFault(one, replay)]).toEqual([true, null]);
      for (const other of named) if (other !== one) expect(outcomeFault(other, outcome)).not.toBeNull();
    }
  });

  test.each(['null', 'not JSON', '[]'])('is not accepted with the payload %s', async (payload) => {
    const { directory } = await openLedgerDirectory();
    const command = grant({ commandKeys: [commandKey('g')] });
    const { event, replayed } = await directory.submit(command);
    expect(outcomeFault(command, { event: otherwise(event, { payload }), replayed })).toBe('it has another payload');
  });

  test('is compared by its content if the command has no key', async () => {
    const { directory } = await openLedgerDirectory();
    const outcome = await directory.submit(append({ payload: '{"a":1}' }));
    expect(outcomeFault(append({ payload: '{"a":1}' }), outcome)).toBeNull();
    expect(outcomeFault(append({ payload: '{"a":2}' }), outcome)).not.toBeNull();
  });
});
