import { LedgerError } from '../errors.ts';
import type { LedgerEvent } from '../event/event.ts';
import type { LedgerFacts } from '../event/facts.ts';
import type { Members } from '../event/row.ts';
import { injectedFields } from '../event/service-events.ts';
import { shownName } from '../event/shown-name.ts';
import type { Draft } from './decide.ts';
import type { MasterState } from './master-state.ts';

export type DecisionIssueType =
  /** Its actor was no party and had no valid grant that allows it. */
  | 'not_permitted'
  | 'closed'
  /** Its created_at is after the latest time that an event can have. */
  | 'dated_ahead'
  /** The service does not write such an event in this state of the ledger. */
  | 'contradiction';

export interface DecisionFault {
  readonly type: DecisionIssueType;
  readonly detail: string;
}

export function contradiction(detail: string): DecisionFault {
  return { type: 'contradiction', detail };
}

/** The error with which the rules refuse the event, as a fault. Empty if they accept it. */
export function refusal(event: LedgerEvent, decided: () => void): DecisionFault[] {
  try {
    decided();
    return [];
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    return [faultOf(event, error)];
  }
}

function faultOf({ actorId, createdAt }: LedgerEvent, { code, details }: LedgerError): DecisionFault {
  switch (code) {
    case 'ledger_closed':
      return { type: 'closed', detail: 'the ledger was closed before it, and only revocations may follow' };
    case 'master_closed':
      return { type: 'closed', detail: 'its master was closed before it, and only revocations may follow' };
    case 'access_expired':
      return { type: 'not_permitted', detail: `the grant of actor ${actorId} had run out at ${createdAt}` };
    case 'permission_denied':
      return { type: 'not_permitted', detail: `actor ${actorId} held a grant that allows less than this event` };
    case 'already_exists':
      return contradiction('its ledger or master begins a second time');
    case 'not_found':
      if (details.field !== undefined) return contradiction('it ends a grant that was not in force');
      return { type: 'not_permitted', detail: `actor ${actorId} was no party and held no grant at ${createdAt}` };
    default:
      if (details.field === 'expires_at') return contradiction('its grant ends before it begins');
      return contradiction('the service refuses such a request');
  }
}

export function differences(event: LedgerEvent, payload: Members, draft: Draft): DecisionFault[] {
  const faults: DecisionFault[] = [];
  const expect = (isSame: boolean, what: string) => {
    if (!isSame) faults.push(contradiction(`${what} is not what the service writes here`));
  };
  expect(event.actorId === draft.actorId, 'actor_id');
  expect(event.actorType === draft.actorType, 'actor_type');
  expect((event.master?.id ?? null) === draft.masterId, 'master_id');
  expect(event.causedByHash === draft.causedByHash, 'caused_by_hash');
  expect(event.actorSig === draft.actorSig, 'actor_sig');
  expect(event.signingKeyId === draft.signingKeyId, 'signing_key_id');
  expect(event.actorSigPayload === draft.actorSigPayload, 'actor_sig_payload');
  if (event.payload !== draft.payload) expect(false, differingMember(payload, JSON.parse(draft.payload)));
  return faults;
}

function differingMember(payload: Members, expected: Members): string {
  const name = Object.keys({ ...expected, ...payload }).find((key) => !sameMember(payload, expected, key));
  return name === undefined ? 'the form of the payload' : `payload.${shownName(name)}`;
}

function sameMember(left: Members, right: Members, name: string): boolean {
  return (
    Object.hasOwn(left, name) === Object.hasOwn(right, name) &&
    JSON.stringify(left[name]) === JSON.stringify(right[name])
  );
}

/** Fields that the service injects into appended payloads and that have another value there. */
export function injectedFaults(
  payload: Members,
  ledger: LedgerFacts | null,
  master: MasterState | null,
): DecisionFault[] {
  if (ledger === null || master === null) return [];
  return Object.entries(injectedFields(ledger, master.facts))
    .filter(([name, value]) => Object.hasOwn(payload, name) && payload[name] !== value)
    .map(([name]) => contradiction(`payload.${name} is not that of its ledger or master`));
}
