import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CommandOutcome } from '../../../src/actors/inbox/outcome.ts';
import type { Directory } from '../../../src/actors/routing/directory.ts';
import { PeerUnreachable } from '../../../src/actors/routing/peers.ts';
import type { Placement } from '../../../src/actors/routing/placement.ts';
import { LedgerError } from '../../../src/domain/errors.ts';
import { checkChain } from '../../../src/domain/event/integrity.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { ManualClock } from '../../support/clock.ts';
import {
  append,
  closeMaster,
  commandKey,
  createMaster,
  delegate,
  grant,
  masterId,
  openLedger,
  revoke,
  siblingId,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { emptyLedgerData } from '../../support/memory-store/ledger-data.ts';
import { faultyLedgerStore, type StoreFault } from '../../support/store-faults.ts';
import { faultsOf, rig, startMs } from '../../support/world.ts';

/**
 * Two nodes over one store, faults everywhere, connections that break, clocks apart: what was answered has to be true.
 */

interface Step {
  readonly node: 0 | 1;
  readonly kind: 'append' | 'delegate_append' | 'grant' | 'revoke' | 'close_sibling';
  readonly onSibling: boolean;
  readonly key: number | null;
  readonly deadlineMs: number;
  readonly passesMs: number;
  readonly copies: number;
}

const steps = fc.array(
  fc.record<Step>({
    node: fc.constantFrom(0, 1),
    kind: fc.oneof(
      { weight: 6, arbitrary: fc.constant('append' as const) },
      { weight: 4, arbitrary: fc.constant('delegate_append' as const) },
      { weight: 2, arbitrary: fc.constantFrom('grant' as const, 'revoke' as const) },
      { weight: 1, arbitrary: fc.constant('close_sibling' as const) },
    ),
    onSibling: fc.boolean(),
    key: fc.option(fc.nat(8)),
    deadlineMs: fc.constantFrom(1, 100, 1_000, 10_000),
    passesMs: fc.constantFrom(0, 0, 0, 1, 60, 300),
    copies: fc.constantFrom(1, 1, 1, 2, 5),
  }),
  { minLength: 5, maxLength: 40 },
);

const faults = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.constant<StoreFault>('unavailable') },
    { weight: 1, arbitrary: fc.constant<StoreFault>('lost') },
    { weight: 1, arbitrary: fc.constant<StoreFault>('applied') },
    { weight: 1, arbitrary: fc.constant<StoreFault>('late') },
    { weight: 1, arbitrary: fc.constant<StoreFault>('late-before-claim') },
  ),
  { minLength: 60, maxLength: 60 },
);

/**
 * What becomes of each question to a peer: it is asked, never reached, or carries the command out and cannot say so.
 */
const wires = fc.array(fc.constantFrom('asked', 'asked', 'refused', 'reset'), { minLength: 10, maxLength: 10 });

function commandOf(step: Step, index: number, nowMs: number): Command {
  const id = step.onSibling ? siblingId : masterId;
  const said = step.key === null ? `i${index}` : `k${step.key}`;
  const commandKeys = step.key === null ? [] : [commandKey(`${step.kind} ${step.onSibling} ${step.key}`)];
  const base = { commandKeys, deadline: nowMs + step.deadlineMs };
  switch (step.kind) {
    case 'append':
      return append({ ...base, masterId: id, payload: `{"said":"${said}"}` });
    case 'delegate_append':
      return append({ ...base, masterId: id, actorId: delegate, payload: `{"said":"${said}"}` });
    case 'grant':
      return grant({ ...base, masterId: id, linkId: uuid(0x5000 + index) });
    case 'revoke':
      return revoke({ ...base, masterId: id });
    case 'close_sibling':
      return closeMaster({ ...base, masterId: siblingId });
  }
}

interface AttemptResult {
  readonly command: Command;
  readonly outcome: CommandOutcome | LedgerError;
}

async function tell(directory: Directory, command: Command): Promise<AttemptResult> {
  try {
    return { command, outcome: await directory.submit(command) };
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    return { command, outcome: error };
  }
}

describe('two nodes over one store that fail at random', () => {
  const result = new Map<string, number>();

  test('every answer is true: written once, not written, or not known', async () => {
    await fc.assert(
      fc.asyncProperty(steps, faults, wires, async (all, faultList, wireList) => {
        const clock = new ManualClock(startMs);
        const data = emptyLedgerData();
        const opener = rig({ clock, data });
        const opening = opener.directory();
        for (const one of [openLedger(), createMaster(), createMaster({ masterId: siblingId })])
          await opening.submit(one);
        await opening[Symbol.asyncDispose]();

        let asked = 0;
        let wired = 0;
        const choose = () => faultList[asked++ % 120] ?? null;
        const worlds = [0, 1].map(() => rig({ clock, data, wrap: (memory) => faultyLedgerStore(memory, choose) }));
        // Both hold the ledger for the second node's; the second one runs what comes to it.
        const placement: Placement = {
          locate: async () => 'node-1',
        };
        const owner = worlds[1]?.directory({ self: 'node-1', placement });
        if (owner === undefined) throw new Error('no node');
        const front = worlds[0]?.directory({
          self: 'node-0',
          placement,
          peers: {
            ask: async (_node, command) => {
              const wire = wireList[wired++ % wireList.length];
              if (wire === 'refused') throw new PeerUnreachable(new Error('refused'), false);
              const carried = owner.submit(command);
              if (wire === 'asked') return carried;
              carried.catch(() => {});
              throw new PeerUnreachable(new Error('reset'));
            },
          },
        });
        if (front === undefined) throw new Error('no node');

        const telling: Promise<AttemptResult>[] = [];
        for (const [index, step] of all.entries()) {
          for (let copy = 0; copy < step.copies; copy++) {
            if (step.key === null && copy > 0) break;
            telling.push(tell(step.node === 0 ? front : owner, commandOf(step, index, clock.now())));
          }
          if (step.passesMs > 0) await clock.advance(step.passesMs);
        }
        await clock.advance(30_000);
        const answers = await Promise.all(telling);
        const closing = Promise.all([front[Symbol.asyncDispose](), owner[Symbol.asyncDispose]()]);
        await clock.advance(30_000);
        await closing;

        const events = await opener.log();
        expect(faultsOf(events)).toEqual([]);
        for (const id of [masterId, siblingId]) {
          const own = events.filter(({ master }) => master?.id === id);
          expect(checkChain(own, { kind: 'master', before: null })).toEqual([]);
        }
        // No command key is in the log twice.
        const commandKeys = events.flatMap(({ commands }) => commands.map(({ id }) => id));
        expect(new Set(commandKeys).size).toBe(commandKeys.length);
        checkGrants(events);
        for (const { command, outcome } of answers) {
          const code = outcome instanceof LedgerError ? outcome.code : 'carried out';
          result.set(code, (result.get(code) ?? 0) + 1);
          if (!(outcome instanceof LedgerError)) {
            expect(events.filter(({ id }) => id === outcome.event.id)).toEqual([outcome.event]);
          } else if (
            outcome.code !== 'outcome_unknown' &&
            command.kind === 'append_event' &&
            command.commandKeys.length === 0
          ) {
            const written = events.filter(
              ({ payload, master }) => payload === command.payload && master?.id === command.masterId,
            );
            expect([outcome.code, written]).toEqual([outcome.code, []]);
          }
        }
      }),
      { numRuns: 250 },
    );
    for (const code of ['carried out', 'not_found', 'unavailable', 'outcome_unknown', 'idempotency_in_progress'])
      expect([code, (result.get(code) ?? 0) > 0]).toEqual([code, true]);
  });
});

/**
 * By the log alone: no delegate's event stands where it held no grant, and nothing but revocations behind a closing.
 */
function checkGrants(events: Awaited<ReturnType<ReturnType<typeof rig>['log']>>): void {
  const held = new Set<string>();
  const closed = new Set<string>();
  for (const { eventType, actorId, master } of events) {
    const id = master?.id ?? '';
    if (eventType !== 'MASTER_DELEGATION_REVOKED') expect(closed.has(id)).toBe(false);
    if (eventType === 'MASTER_DELEGATION_GRANTED') held.add(id);
    if (eventType === 'MASTER_DELEGATION_REVOKED') held.delete(id);
    if (eventType === 'MASTER_CLOSED') closed.add(id);
    if (eventType === 'SHIPMENT_DISPATCHED' && actorId !== supplier) expect(held.has(id)).toBe(true);
  }
}
