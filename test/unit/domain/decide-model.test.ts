import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../../src/domain/errors.ts';
import { checkChain } from '../../../src/domain/event/integrity.ts';
import { formatRow, parseRow } from '../../../src/domain/event/row.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import {
  applyToLedger,
  emptyLedger,
  ledgerStateFrom,
  ledgerStateJson,
} from '../../../src/domain/ledger/ledger-state.ts';
import {
  applyToMaster,
  type MasterState,
  masterStateFrom,
  masterStateJson,
} from '../../../src/domain/ledger/master-state.ts';
import { isoTime } from '../../../src/domain/values/time.ts';
import {
  append,
  buyer,
  closeLedger,
  closeMaster,
  createMaster,
  grant,
  openLedger,
  revoke,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { Chain, faultsOf, startMs } from '../../support/world.ts';

/**
 * A second account of who may do what, written from the rules of access (docs/api.md) and not from the code: random
 * commands are put to both, and have to be carried out or refused alike.
 */

const parties = [buyer, supplier];
const others = [uuid(0xd1), uuid(0xd2), uuid(0xd3)];
const masters = [uuid(0xa1), uuid(0xa2)];

interface Held {
  readonly linkId: string;
  readonly writes: boolean;
  readonly grants: boolean;
  readonly endsMs: number;
}

type Refusal = ErrorCode | null;

class Account {
  ledgerClosed = false;
  readonly masterClosed = new Map<string, boolean>();
  readonly held = new Map<string, Held>();

  /** What the command comes to, and from then on has done. */
  take(command: Command, nowMs: number): Refusal {
    const refusal = this.#judge(command, nowMs);
    if (refusal === null) this.#apply(command);
    return refusal;
  }

  #judge(command: Command, nowMs: number): Refusal {
    const { actorId } = command;
    const isParty = parties.includes(actorId);
    const masterId = 'masterId' in command ? command.masterId : null;
    const onMaster = masterId !== null && command.kind !== 'create_master';
    if (onMaster && !this.masterClosed.has(masterId)) return 'not_found';
    const links = [this.held.get(`ledger ${actorId}`)];
    if (onMaster) links.push(this.held.get(`${masterId} ${actorId}`));
    const known = links.filter((link) => link !== undefined);
    const live = known.filter(({ endsMs }) => nowMs < endsMs);
    if (!isParty && live.length === 0) return known.length > 0 ? 'access_expired' : 'not_found';
    switch (command.kind) {
      case 'open_ledger':
        return 'already_exists';
      case 'create_master':
      case 'append_event':
        if (!isParty && !live.some(({ writes }) => writes)) return 'permission_denied';
        break;
      case 'close_ledger':
      case 'close_master':
        if (!isParty) return 'permission_denied';
        break;
      case 'grant':
      case 'revoke':
        if (!isParty && !live.some(({ grants }) => grants)) return 'permission_denied';
        break;
    }
    if (command.kind === 'revoke') return this.#linkOf(command) === null ? 'not_found' : null;
    if (this.ledgerClosed) return 'ledger_closed';
    if (command.kind === 'create_master') return this.masterClosed.has(command.masterId) ? 'already_exists' : null;
    if (onMaster && this.masterClosed.get(masterId) === true) return 'master_closed';
    if (command.kind === 'grant' && command.expiresAt !== null && Date.parse(command.expiresAt) <= nowMs)
      return 'invalid_argument';
    return null;
  }

  #linkOf(command: Extract<Command, { kind: 'revoke' }>): string | null {
    const place = command.masterId ?? 'ledger';
    if (command.delegateActorId !== null) {
      const key = `${place} ${command.delegateActorId}`;
      return this.held.has(key) ? key : null;
    }
    for (const [key, { linkId }] of this.held) if (key.startsWith(place) && linkId === command.linkId) return key;
    return null;
  }

  #apply(command: Command): void {
    switch (command.kind) {
      case 'create_master':
        this.masterClosed.set(command.masterId, false);
        break;
      case 'close_master':
        this.masterClosed.set(command.masterId, true);
        break;
      case 'close_ledger':
        this.ledgerClosed = true;
        break;
      case 'grant': {
        const access = command.permissions.includes('read')
          ? 'read'
          : command.permissions.includes('write')
            ? 'write'
            : null;
        const writes = access === null ? ['OWNER', 'OPS'].includes(command.role) : access === 'write';
        this.held.set(`${command.masterId ?? 'ledger'} ${command.delegateActorId}`, {
          linkId: command.linkId,
          writes,
          grants: writes && command.role === 'OWNER' && command.scope === 'ledger',
          endsMs: command.expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(command.expiresAt),
        });
        break;
      }
      case 'revoke':
        this.held.delete(this.#linkOf(command) ?? '');
        break;
    }
  }
}

interface Step {
  readonly kind: 'append' | 'create' | 'close_master' | 'close_ledger' | 'grant' | 'revoke' | 'revoke_link' | 'open';
  readonly actorId: string;
  readonly masterId: string;
  readonly onLedger: boolean;
  readonly to: string;
  readonly role: string;
  readonly access: 'read' | 'write' | undefined;
  readonly lastsMs: number | null;
  readonly link: number;
  readonly passesMs: number;
}

const steps = fc.array(
  fc.record<Step>({
    kind: fc.oneof(
      { weight: 8, arbitrary: fc.constant('append' as const) },
      { weight: 8, arbitrary: fc.constant('grant' as const) },
      { weight: 4, arbitrary: fc.constantFrom('revoke' as const, 'revoke_link' as const) },
      { weight: 3, arbitrary: fc.constant('create' as const) },
      { weight: 3, arbitrary: fc.constant('close_master' as const) },
      { weight: 1, arbitrary: fc.constantFrom('close_ledger' as const, 'open' as const) },
    ),
    actorId: fc.constantFrom(...parties, ...others),
    masterId: fc.constantFrom(...masters),
    onLedger: fc.boolean(),
    to: fc.constantFrom(...others),
    role: fc.constantFrom('OWNER', 'OPS', 'AUDITOR'),
    access: fc.constantFrom('read' as const, 'write' as const, undefined),
    lastsMs: fc.option(fc.constantFrom(-1, 0, 1, 50, 100, 1_000)),
    link: fc.nat(30),
    passesMs: fc.constantFrom(0, 0, 1, 49, 100),
  }),
  { minLength: 10, maxLength: 60 },
);

function commandOf(step: Step, link: number, nowMs: number): Command {
  const { actorId, masterId, to: delegateActorId } = step;
  const scope = step.onLedger ? 'ledger' : 'master';
  switch (step.kind) {
    case 'open':
      return openLedger({ actorId: buyer });
    case 'append':
      return append({ actorId, masterId });
    case 'create':
      return createMaster({ actorId, masterId });
    case 'close_master':
      return closeMaster({ actorId, masterId });
    case 'close_ledger':
      return closeLedger({ actorId });
    case 'grant': {
      const expiresAt = step.lastsMs === null ? null : isoTime(nowMs + step.lastsMs);
      const { access } = step;
      // A grant that runs out is asked for by its access.
      const role = expiresAt === null ? step.role : 'ACCESS';
      const linkId = uuid(0x1000 + link);
      const given = access === undefined ? {} : { access };
      return grant({ actorId, scope, masterId, delegateActorId, role, linkId, expiresAt, ...given });
    }
    case 'revoke':
      return revoke({ actorId, scope, masterId, delegateActorId });
    case 'revoke_link':
      return revoke({ actorId, scope, masterId, delegateActorId: null, linkId: uuid(0x1000 + step.link) });
  }
}

describe('random commands of parties, delegates and strangers', () => {
  test('are decided as the independent model decides them, and the log replays to the same state', () => {
    const judged = new Map<string, number>();
    fc.assert(
      fc.property(steps, (all) => {
        const chain = new Chain();
        chain.run(openLedger());
        const account = new Account();
        let nowMs = startMs;
        for (const [link, step] of all.entries()) {
          nowMs += step.passesMs;
          const command = commandOf(step, link, nowMs);
          const count = chain.events.length;
          const refusal = chain.refusal(command, isoTime(nowMs));
          expect([link, command.kind, refusal]).toEqual([link, command.kind, account.take(command, nowMs)]);
          expect(chain.events.length).toBe(refusal === null ? count + 1 : count);
          judged.set(String(refusal), (judged.get(String(refusal)) ?? 0) + 1);
        }
        expect(faultsOf(chain.events)).toEqual([]);
        checkReplay(chain);
      }),
      { numRuns: 300 },
    );
    // Nothing was proved about answers that never came.
    for (const answer of ['null', 'not_found', 'access_expired', 'permission_denied', 'ledger_closed', 'master_closed'])
      expect([answer, (judged.get(answer) ?? 0) > 5]).toEqual([answer, true]);
  });
});

/** Replaying the stored rows, with a snapshot taken after each event, gives the state that deciding went on with. */
function checkReplay(chain: Chain): void {
  const events = chain.events.map((event) => parseRow(formatRow(event)));
  expect(events).toEqual(chain.events);
  let ledger = emptyLedger;
  const masterStates = new Map<string, MasterState>();
  for (const event of events) {
    ledger = ledgerStateFrom(ledgerStateJson(applyToLedger(ledger, event)));
    if (event.master === null) continue;
    const folded = applyToMaster(masterStates.get(event.master.id) ?? null, event);
    masterStates.set(event.master.id, masterStateFrom(masterStateJson(folded)));
  }
  expect(ledger).toEqual(chain.ledger);
  expect(masterStates).toEqual(chain.masters);
  for (const id of masters) {
    const own = events.filter(({ master }) => master?.id === id);
    expect(checkChain(own, { kind: 'master', before: null })).toEqual([]);
    expect(own.map(({ master }) => master?.seq)).toEqual(own.map((_, index) => index));
  }
}
