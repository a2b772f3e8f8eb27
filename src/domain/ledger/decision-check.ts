import type { LedgerEvent } from '../event/event.ts';
import { type LedgerFacts, noFacts } from '../event/facts.ts';
import { foldedGrant, hasRoomFor } from '../event/grant.ts';
import { isMembers, type Members } from '../event/row.ts';
import { delegationOfType } from '../event/service-events.ts';
import { sha256Hex } from '../keys/hash.ts';
import type { Command } from './command.ts';
import { type Draft, decide } from './decide.ts';
import { contradiction, type DecisionFault, differences, injectedFaults, refusal } from './decision-fault.ts';
import { applyToLedger, emptyLedger, type LedgerState } from './ledger-state.ts';
import { applyToMaster, type MasterState } from './master-state.ts';
import { demandAccess, ledgerAccessLevel } from './permission.ts';
import { recordedCommand } from './recorded-command.ts';
import { grantIdentity } from './recorded-forms.ts';

interface DecisionOptions {
  /** The ISO time now, or at the last event. Events that are dated later are reported. */
  readonly latest?: (() => string) | undefined;
}

interface KnownMaster {
  readonly state: MasterState;
  readonly isWhole: boolean;
}

/**
 * Decides the events of one ledger again, from the log alone, by the rules of `decide`. This finds what hashes and
 * signatures do not show: an event by an actor without the right to write it, after a close, or dated ahead.
 *
 * Takes events in ascending order. After a gap, and in the list of one master, only what the available events prove is
 * checked: closes, dates, and the grants of masters that are complete from their first event on. The form of fields,
 * hashes, signatures, and that each event continues the ones before it are checked elsewhere.
 *
 * An event that was not permitted, or came after a close, changes nothing, and nor does a grant to one delegate more
 * than there may be. So an event that builds on it is a finding too.
 */
export class DecisionCheck {
  readonly #latest: (() => string) | null;
  readonly #masters = new Map<string, KnownMaster>();
  /** The hash of what each link grants, by link. */
  readonly #links = new Map<string, string>();
  #ledger: LedgerState = emptyLedger;
  #isWhole = true;
  /** Events behind GENESIS that the opening command also writes. */
  #opening: readonly Draft[] = [];

  constructor({ latest }: DecisionOptions = {}) {
    this.#latest = latest ?? null;
  }

  /** Never throws because of an event's content. */
  take(event: LedgerEvent): DecisionFault[] {
    if (event.seq !== this.#ledger.seq + 1) this.#isWhole = false;
    const dated = this.#dateFaults(event);
    let decided: DecisionFault[];
    try {
      decided = this.#decisionFaults(event);
    } catch {
      decided = [contradiction('its payload cannot be read')];
    }
    this.#fold(event, decided);
    return [...dated, ...decided];
  }

  #dateFaults({ createdAt }: LedgerEvent): DecisionFault[] {
    const latest = this.#latest?.();
    // If an earlier event is dated later still, that event alone is reported.
    if (latest === undefined || createdAt <= latest || createdAt < this.#ledger.createdAt) return [];
    return [{ type: 'dated_ahead', detail: `it is dated ${createdAt}, and no event is later than ${latest}` }];
  }

  #masterOf(event: LedgerEvent): KnownMaster | null {
    return event.master === null ? null : (this.#masters.get(event.master.id) ?? null);
  }

  #decisionFaults(event: LedgerEvent): DecisionFault[] {
    const payload: unknown = JSON.parse(event.payload);
    if (!isMembers(payload)) return [contradiction('its payload is no object')];
    const isOpening = event.eventType === 'ORDER_OPENED' || event.eventType === 'ORGANIZATION_REGISTERED';
    if (this.#isWhole) {
      const [expected] = this.#opening;
      if (expected !== undefined) return this.#openingFaults(event, payload, expected);
      if (isOpening) return [contradiction(`${event.eventType} stands right behind GENESIS, and nowhere else`)];
      if ((event.eventType === 'GENESIS') !== (event.seq === 0))
        return [contradiction('a ledger begins with GENESIS, and with nothing else')];
    } else if (isOpening) return [];
    const command = recordedCommand(event, payload);
    if (typeof command === 'string') return [contradiction(command)];
    if (command.kind === 'grant' && this.#isOtherLink(command.linkId, grantIdentity(event.eventType, payload)))
      return [contradiction('its link_id is that of another grant')];
    return this.#isWhole ? this.#wholeFaults(event, payload, command) : this.#partFaults(event, payload, command);
  }

  /** A link is drawn for one request. That request recorded a second time is the same grant, and changes nothing. */
  #isOtherLink(linkId: string, identity: string): boolean {
    const hash = sha256Hex(identity);
    const known = this.#links.get(linkId) ?? hash;
    this.#links.set(linkId, known);
    return known !== hash;
  }

  /** `expected` has the type of the second event, and for an ORDER ledger its payload. */
  #openingFaults(event: LedgerEvent, payload: Members, expected: Draft): DecisionFault[] {
    if (event.eventType !== expected.eventType)
      return [contradiction(`${expected.eventType} must stand behind GENESIS`)];
    const { actorId, createdAt } = event;
    const refused = refusal(event, () =>
      demandAccess(ledgerAccessLevel(this.#ledger, actorId ?? '', createdAt), 'party', 'ledger'),
    );
    if (event.eventType === 'ORDER_OPENED')
      return [...refused, ...differences(event, payload, { ...expected, actorId })];
    if (event.actorType !== expected.actorType)
      return [...refused, contradiction('actor_type is not what the service writes here')];
    const isOther = payload.organization_id !== this.#ledger.facts?.organizationId;
    return isOther ? [...refused, contradiction('payload.organization_id is not that of the ledger')] : refused;
  }

  #wholeFaults(event: LedgerEvent, payload: Members, command: Command): DecisionFault[] {
    const master = this.#masterOf(event)?.state ?? null;
    if (event.master !== null && master === null && command.kind !== 'create_master')
      return [contradiction('its master does not begin with TRACELEDGER_MASTER_CREATED')];
    let drafts: readonly Draft[] = [];
    const refused = refusal(event, () => {
      drafts = decide(this.#ledger, master, command, event.createdAt);
    });
    const [draft, ...more] = drafts;
    if (draft === undefined) return refused;
    if (command.kind === 'open_ledger') this.#opening = more;
    const faults = differences(event, payload, draft);
    return command.kind === 'append_event'
      ? [...faults, ...injectedFaults(payload, this.#ledger.facts, master)]
      : faults;
  }

  /**
   * Checks an event after a gap, as if its actor were a party: its rights are not known. That refuses no honest event,
   * because a party may do everything.
   */
  #partFaults(event: LedgerEvent, payload: Members, command: Command): DecisionFault[] {
    if (command.kind === 'open_ledger') return [];
    const known = this.#masterOf(event);
    // The state before a gap of the master decides nothing behind it.
    const isWhole = known?.isWhole === true && (event.master?.seq ?? 0) <= known.state.masterSeq + 1;
    const unseen = command.kind === 'create_master' || event.master === null ? null : unknownMaster(event);
    const ledger = { ...this.#ledger, facts: factsOfParty(this.#ledger.facts, event) };
    let drafts: readonly Draft[] = [];
    const refused = refusal(event, () => {
      drafts = decide(ledger, known?.state ?? unseen, command, event.createdAt);
    });
    if (!isWhole) return refused.filter(({ type }) => type === 'closed');
    const [draft] = drafts;
    const isDelegation = command.kind === 'grant' || command.kind === 'revoke';
    return draft === undefined || !isDelegation ? refused : differences(event, payload, draft);
  }

  /**
   * Whether an event is no grant, or its delegate is not one more than there may be. A forger may grant without end,
   * and each grant costs a copy of those before.
   */
  #hasRoom(event: LedgerEvent): boolean {
    const delegation = delegationOfType(event.eventType);
    if (delegation?.isGrant !== true) return true;
    const { ledgerGrants, organizationGrants } = this.#ledger;
    const masterGrants = this.#masterOf(event)?.state.grants ?? new Map();
    const grants = { ledger: ledgerGrants, organization: organizationGrants, master: masterGrants }[delegation.scope];
    return readable(() => hasRoomFor(foldedGrant(event).delegateActorId, grants, event.createdAt), false);
  }

  /** Moves on to the event. It takes effect if it was permitted, can be read, and is no grant too many. */
  #fold(event: LedgerEvent, decided: readonly DecisionFault[]): void {
    const { seq, hash, createdAt } = event;
    if (event.eventType !== 'GENESIS') this.#opening = [];
    const takesEffect = decided.every(({ type }) => type === 'contradiction') && this.#hasRoom(event);
    const ledger = this.#ledger;
    const latest = createdAt > ledger.createdAt ? createdAt : ledger.createdAt;
    this.#ledger = {
      ...(takesEffect ? readable(() => applyToLedger(ledger, event), ledger) : ledger),
      ...{ seq, hash, createdAt: latest },
    };
    if (event.master === null) return;
    const { id, seq: masterSeq } = event.master;
    const known = this.#masters.get(id) ?? null;
    const isFirst = known === null && masterSeq === 0 && event.eventType === 'TRACELEDGER_MASTER_CREATED';
    const before = known?.state ?? unknownMaster(event);
    // A master that was created without permission still exists: its events name it.
    const applied =
      isFirst || takesEffect ? readable(() => applyToMaster(isFirst ? null : before, event), before) : before;
    this.#masters.set(id, {
      state: { ...applied, masterSeq, contentHash: event.contentHash, seq, hash },
      isWhole: isFirst || (known?.isWhole === true && masterSeq === known.state.masterSeq + 1),
    });
  }
}

function readable<T>(fold: () => T, before: T): T {
  try {
    return fold();
  } catch {
    return before;
  }
}

function unknownMaster({ ledgerId, master }: LedgerEvent): MasterState {
  const masterId = master?.id ?? '';
  const facts = { masterId, ledgerId, businessRef: '', scope: '', createdBy: '', createdAt: '', createdSeq: 0 };
  return { facts, closed: false, masterSeq: -1, contentHash: '', seq: -1, hash: '', grants: new Map() };
}

function factsOfParty(known: LedgerFacts | null, { ledgerId, actorId }: LedgerEvent): LedgerFacts {
  const unknown = { ...noFacts, ledgerId, type: 'ORDER' as const, createdAt: '', genesisHash: '' };
  // Whether the ledger is the root of an organization is not known, and decides nothing here.
  return { ...(known ?? unknown), primaryActorId: actorId ?? '', organizationId: known?.organizationId ?? '' };
}
