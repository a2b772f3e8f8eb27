import { expect } from 'vitest';
import type { Event, JsonObject } from '../../src/client/index.ts';
import { exported } from '../support/export-of-vectors.ts';
import { at, chain, relinked, resealed } from '../support/vector-chain.ts';
import { testWith } from './toolchain.ts';
import {
  type Case,
  engagement,
  linesOf,
  linkOf,
  ofEvents,
  ofMaster,
  ofText,
  sealed,
  signedAgain,
  signedWith,
  stranger,
} from './verifier-cases.ts';
import { fewMs, manyMs, sameDecisions, title } from './verifier-decisions.ts';

/** The events of the vectors as each reader may have them, with one event changed. */
function views(name: string, index: number, events: readonly Event[]): Case[] {
  const { masterId } = at(index);
  const parts: [string, readonly Event[]][] = [
    ['ledger', events],
    ['segment', events.filter(({ seq }) => seq !== 1)],
    ['segment', events.slice(2)],
    ['segment', events.filter(({ seq }) => seq === index)],
    ...(masterId === null ? [] : [['master', events.filter((one) => one.masterId === masterId)] as [string, Event[]]]),
  ];
  return parts.map(([kind, seen], at) => ofEvents(`${name}, ${kind} ${at}`, seen, kind));
}

/** A member of a payload that is missing or has another value, signed so by its actor or not. */
const otherMembers: readonly Case[] = [2, 4, 5, 6, 7, 8].flatMap((index) => {
  const { payload, actorSigPayload } = at(index);
  return Object.keys(payload).flatMap((member) => {
    const { [member]: _, ...without } = payload;
    const { [member]: signed, ...withoutSigned } = actorSigPayload ?? {};
    const isSigned = signed !== undefined;
    return [
      { payload: without },
      { payload: { ...payload, [member]: 5 } },
      ...(isSigned ? [{ payload: without, actorSigPayload: withoutSigned }] : []),
      ...(isSigned
        ? [{ payload: { ...payload, [member]: 5 }, actorSigPayload: { ...actorSigPayload, [member]: 5 } }]
        : []),
    ].flatMap((change) =>
      views(`#${index} with ${member} ${JSON.stringify(change).slice(0, 120)}`, index, signedWith(index, change)),
    );
  });
});

const laterBy = (event: Event, change: Partial<Event>): Event => ({
  ...event,
  id: stranger,
  seq: 9,
  createdAt: '2026-11-21T02:06:39.109Z',
  ...change,
});
const placed = (events: readonly Event[]) => signedAgain(relinked(events));
const grantOf = (more: JsonObject) => ({
  payload: { ...at(6).payload, ...more },
  actorSigPayload: at(6).actorSigPayload,
});
const end = { traceledger_master_id: at(6).masterId, delegate_actor_id: at(6).payload.delegate_actor_id as string };
const ended = (more: JsonObject) => ({
  ...at(6),
  id: stranger,
  eventType: 'MASTER_DELEGATION_REVOKED',
  payload: { ...end, link_id: at(6).payload.link_id as string, revoked_at: at(6).createdAt, ...more },
  actorSigPayload: end,
});
const linkOfMaster = { link_id: linkOf };

const ofOrganization = laterBy(at(6), {
  eventType: 'SUPPLIER_DELEGATION_GRANTED',
  masterId: null,
  masterSeq: null,
  payload: {
    organization_id: stranger,
    delegate_actor_id: stranger,
    role: 'OPS',
    permissions: {},
    link_id: linkOf,
    granted_at: '2026-11-21T02:06:39.109Z',
  },
  actorSigPayload: { organization_id: stranger, delegate_actor_id: stranger, role: 'OPS', permissions: {} },
});

/** An export of a master whose first line does not say so. */
function ofNoMaster(name: string, events: readonly Event[]): Case {
  return ofText(name, exported(linesOf(events), { kind: 'master' }));
}

/** What contradicts the events before it, also where not all of them are at hand. */
const partial: readonly Case[] = [
  ...views('an event behind a close', 5, signedAgain(relinked([...chain, laterBy(at(5), {})]), 9)),
  ...views(
    'an event behind the close of its master',
    4,
    placed(chain.toSpliced(8, 0, laterBy(at(4), { createdAt: at(7).createdAt }))),
  ),
  ...views('a grant of an organization behind a close', 6, signedAgain(relinked([...chain, ofOrganization]), 9)),
  ...views('the end of a grant', 6, placed(chain.toSpliced(7, 0, ended({})))),
  ...views(
    'the end of a grant, dated otherwise',
    6,
    placed(chain.toSpliced(7, 0, ended({ revoked_at: at(5).createdAt }))),
  ),
  ...views('the end of another grant', 6, placed(chain.toSpliced(7, 0, ended(linkOfMaster)))),
  ...views('the end of a grant before it', 6, placed(chain.toSpliced(6, 0, ended({ revoked_at: at(6).createdAt })))),
  ...views('a grant twice', 6, placed(chain.toSpliced(7, 0, { ...at(6), id: stranger }))),
  ...views(
    'a grant in place of another',
    6,
    placed(
      chain.toSpliced(7, 0, {
        ...at(6),
        id: stranger,
        ...grantOf({ ...linkOfMaster, replaces_link_id: at(6).payload.link_id as string }),
      }),
    ),
  ),
  ...views(
    'a grant beside another',
    6,
    placed(chain.toSpliced(7, 0, { ...at(6), id: stranger, ...grantOf(linkOfMaster) })),
  ),
  ...views('a master twice', 2, placed(chain.toSpliced(3, 0, { ...at(2), id: stranger }))),
  ...views('a master without its beginning', 4, signedAgain(relinked(chain).filter(({ seq }) => seq !== 2))),
  ofEvents(
    'a segment that begins without the beginning of a master',
    resealed(
      chain.filter(({ seq }) => seq !== 2).map((event, seq) => ({ ...event, seq })),
      0,
    ),
    'segment',
  ),
  ofEvents('two masters in the export of one', chain.slice(2), 'master'),
  ofNoMaster('a master whose export does not name it', ofMaster),
  ofNoMaster('two masters whose export does not name one', chain.slice(2, 6)),
];

const numbered = (kind: string, index: number) => `0193a000-0000-7000-${kind}-${index.toString(16).padStart(12, '0')}`;
function accessOf(index: number, createdAt: string, expiresAt: string, more: JsonObject = {}): Event {
  const members = { traceledger_master_id: at(6).masterId, delegate_actor_id: numbered('8001', index) };
  const derived = { access: 'read', role: 'ACCESS', permissions: { access: 'read' } };
  const own = { link_id: numbered('8002', index), granted_at: createdAt, expires_at: expiresAt };
  const payload = { ...members, ...derived, ...own, ...more };
  return { ...at(6), ...sealed, id: numbered('8003', index), createdAt, payload };
}
const [early, second, third] = ['2026-11-21T02:06:40.000Z', '2026-11-21T02:06:41.000Z', '2026-11-21T02:06:42.000Z'];
/** Grants to 1,000 actors that have run out: most in one second, number 500 and 700 before. */
const expired = Array.from({ length: 1_000 }, (_, index) =>
  accessOf(index, at(6).createdAt, index === 500 || index === 700 ? early : second),
);
const behindExpired = (...more: readonly Event[]) => resealed(relinked([...chain.slice(0, 6), ...expired, ...more]), 6);
const last = '2099-01-01T00:00:00Z';
const newGrant = (index: number, more: JsonObject = {}) => ({
  ...accessOf(index, third, last, { link_id: numbered('8004', index), ...more }),
  id: numbered('8005', index),
});
const delegateOfVectors = String(at(6).payload.delegate_actor_id);
const replacing = (index: number) => ({ replaces_link_id: numbered('8002', index) });

/** Grants to as many actors as there may be, in the places of those that have run out. */
const holding = Array.from({ length: 1_000 }, (_, index) => newGrant(1_000 + index));
/** The grant of the vectors, its end, and a new grant to the same actor. */
const regranted = resealed(
  relinked([
    ...chain.slice(0, 7),
    endOf(0, { delegate_actor_id: delegateOfVectors, link_id: String(at(6).payload.link_id) }),
    newGrant(0, { delegate_actor_id: delegateOfVectors }),
  ]),
  7,
);

/** Which grants are forgotten that ran out. The first grant to one more actor makes room for itself. */
const forgotten: readonly Case[] = [
  ofEvents('a grant to the actor that was forgotten', behindExpired(newGrant(1_000), newGrant(500))),
  ofEvents('the same, with what it would replace', behindExpired(newGrant(1_000), newGrant(500, replacing(500)))),
  ofEvents('a grant to one that was not forgotten', behindExpired(newGrant(1_000), newGrant(700, replacing(700)))),
  ofEvents('the same, without what it replaces', behindExpired(newGrant(1_000), newGrant(700))),
  ofEvents('a second one forgotten', behindExpired(newGrant(1_000), newGrant(1_001), newGrant(700))),
  ofEvents('a third one, by its link', behindExpired(...[1_000, 1_001, 1_002, 0].map((index) => newGrant(index)))),
  ofEvents('one that is replaced', behindExpired(newGrant(3, replacing(3)), newGrant(500, replacing(500)))),
  ofEvents('the end of one that was forgotten', behindExpired(newGrant(1_000), endOf(500))),
  ofEvents('the end of one that was not', behindExpired(newGrant(1_000), endOf(700))),
  ofEvents('one too many, where none has run out', behindExpired(...holding, newGrant(2_000))),
];

/** The state before a gap decides nothing behind it. */
const gaps: readonly Case[] = [
  ofEvents('a grant behind the end of another', regranted),
  ofEvents(
    'a grant behind a missing end of another',
    regranted.filter(({ seq }) => seq !== 7),
    'segment',
  ),
  ofEvents('a grant beside another', resealed(relinked(regranted.filter(({ seq }) => seq !== 7)), 7)),
];

function endOf(index: number, more: JsonObject = {}): Event {
  const members = { traceledger_master_id: at(6).masterId, delegate_actor_id: numbered('8001', index) };
  const payload = { ...members, link_id: numbered('8002', index), revoked_at: third, ...more };
  const end = { id: numbered('8005', index), eventType: 'MASTER_DELEGATION_REVOKED', createdAt: third, payload };
  return { ...at(6), ...sealed, ...end };
}

/** Event types that look like one of the service, each with what is right. */
const types: readonly (Case & { readonly code: number })[] = [
  ...['LEDGER_CLOSED_NOTE', 'MASTER_CLOSED_BY_PHONE', 'LEDGER_DELEGATION_ASKED', 'TRACELEDGER_MASTER_CREATED.v2'].map(
    (eventType) => ({ ...ofEvents(eventType, signedWith(4, { eventType })), code: 0 }),
  ),
  ...['ORDER_CLOSED', 'SHIPMENT_DISPATCHED'].map((eventType) => {
    const actorSigPayload = { ...at(4).payload, penalty: null };
    return {
      ...ofEvents(`${eventType} without what was signed`, signedWith(4, { eventType, actorSigPayload })),
      code: 1,
    };
  }),
  { ...ofEvents('what an engagement adds to nothing', engagement({}, { buyer_actor_id: { price: 1 } })), code: 1 },
];

testWith(
  'python3',
  `${title} where events are missing, and a member is missing or another`,
  async () => {
    expect(new Set(await sameDecisions(partial))).toEqual(new Set([0, 1, 2]));
    const codes = await sameDecisions(otherMembers);
    expect(codes.filter((code) => code === 1).length).toBeGreaterThan(300);
    expect(new Set(codes)).toEqual(new Set([0, 1, 2]));
  },
  manyMs,
);

testWith(
  'python3',
  `${title} where grants have run out and were forgotten`,
  async () => {
    expect(await sameDecisions(forgotten)).toEqual([0, 1, 0, 1, 0, 0, 0, 1, 0, 1]);
    expect(await sameDecisions(gaps)).toEqual([0, 2, 1]);
  },
  fewMs,
);

testWith(
  'python3',
  `${title} where types look like those of the service, or the service adds what the ledger does not have`,
  async () => {
    expect(await sameDecisions(types)).toEqual(types.map(({ code }) => code));
  },
  fewMs,
);
