import { setTimeout } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { type LiveEvents, liveEvents } from '../support/live-events.ts';
import { nodeWithOrder } from '../support/node-for-tests.ts';
import { append, bearerOf, newMaster, newParty, otherOrder, type Party } from '../support/parties.ts';
import { done, type Fields } from '../support/parties-rest.ts';

vi.setConfig({ testTimeout: 600_000 });

const atOnce = 4;

const { base, order } = await nodeWithOrder({ keyed: false });

interface Scene {
  readonly own: Awaited<ReturnType<typeof otherOrder>>;
  readonly master: Awaited<ReturnType<typeof newMaster>>;
  /** Ends the appends that run beside the race. */
  stop(): Promise<void>;
}

/** A ledger to which both parties append all the time. */
async function scene(): Promise<Scene> {
  const own = await otherOrder(order);
  const master = await newMaster(own);
  let isOver = false;
  const write = async (by: typeof own.buyer): Promise<void> => {
    for (let n = 0; !isOver; n += 1) await append(master, by, 'RACED', { n });
  };
  const writing = Promise.all([write(own.buyer), write(own.supplier)]);
  return {
    own,
    master,
    stop: async () => {
      isOver = true;
      await writing;
    },
  };
}

const eventsIn = (stream: LiveEvents) =>
  stream.all.filter(({ event }) => event === 'event').map(({ data }) => data.event as Fields);

/** How a stream ended: the code of its error, and how long after `sinceMs`. */
async function endOf(stream: LiveEvents, sinceMs: () => number): Promise<{ code: unknown; afterMs: number }> {
  const all = await stream.ended();
  const afterMs = Date.now() - sinceMs();
  const error = all.at(-1)?.data.error as Fields | undefined;
  return { code: error?.code, afterMs };
}

async function masterGrant({ own, master }: Scene, delegate: Party, more: Fields = {}): Promise<string> {
  const body = { actor_id: delegate.actorId, access: 'read', ...more };
  const path = `/v1/traceledger/master/${master.uuid}/access`;
  const made = await done(base, 'POST', path, own.buyer, body);
  return `${path}/${made.text('link_id')}`;
}

const paths = ({ own, master }: Scene) => [
  `/v1/ledgers/${own.ledgerId}/events/follow?after_seq=-1`,
  `/v1/traceledger/master/${master.uuid}/events/follow`,
];

/** Each race returns how many events its streams were sent. */
async function revokedGrant(): Promise<number> {
  const there = await scene();
  const delegate = await newParty(base, { keyed: false });
  const link = await masterGrant(there, delegate);
  const streams = await Promise.all(paths(there).map((path) => liveEvents(base, path, delegate.bearer)));
  let revokedMs = Number.POSITIVE_INFINITY;
  const ends = streams.map((stream) => endOf(stream, () => revokedMs));
  await setTimeout(Math.random() * 150);
  await done(base, 'DELETE', link, there.own.buyer);
  revokedMs = Date.now();
  for (const { code, afterMs } of await Promise.all(ends)) {
    expect(code).toBe('permission_denied');
    expect(afterMs).toBeLessThan(1_000);
  }
  await there.stop();
  const list = `/v1/ledgers/${there.own.ledgerId}/events?event_type=MASTER_DELEGATION_REVOKED`;
  const [revocation] = (await done(base, 'GET', list, there.own.buyer)).rows('events');
  const seqs = streams.flatMap(eventsIn).map(({ seq }) => Number(seq));
  expect(Math.max(...seqs, -1)).toBeLessThan(Number(revocation?.seq));
  return seqs.length;
}

async function expiredGrant(): Promise<number> {
  const there = await scene();
  const delegate = await newParty(base, { keyed: false });
  const expiresAt = new Date(Date.now() + 3_000 + Math.random() * 500).toISOString();
  await masterGrant(there, delegate, { expires_at: expiresAt });
  const streams = await Promise.all(paths(there).map((path) => liveEvents(base, path, delegate.bearer)));
  for (const { code, afterMs } of await Promise.all(streams.map((one) => endOf(one, () => Date.parse(expiresAt))))) {
    expect(code).toBe('access_expired');
    expect(afterMs).toBeLessThan(1_000);
  }
  await there.stop();
  const times = streams.flatMap(eventsIn).map(({ created_at }) => String(created_at));
  for (const time of times) expect(time < expiresAt).toBe(true);
  return times.length;
}

async function revokedKey(): Promise<number> {
  const there = await scene();
  const { bearer } = there.own.buyer;
  const made = await done(base, 'POST', '/v1/developer/keys', { headers: bearer, body: { name: 'raced' } });
  const streams = await Promise.all(paths(there).map((path) => liveEvents(base, path, bearerOf(made.text('api_key')))));
  let revokedMs = Number.POSITIVE_INFINITY;
  const ends = streams.map((stream) => endOf(stream, () => revokedMs));
  await setTimeout(Math.random() * 150);
  await done(base, 'DELETE', `/v1/developer/keys/${made.text('key_id')}`, { headers: bearer });
  revokedMs = Date.now();
  await Promise.all([1, 2, 3].map((n) => append(there.master, there.own.supplier, 'WRITTEN_AFTERWARDS', { n })));
  for (const { code, afterMs } of await Promise.all(ends)) {
    expect(code).toBe('invalid_api_key');
    expect(afterMs).toBeLessThan(1_000);
  }
  await there.stop();
  const types = streams.flatMap(eventsIn).map(({ event_type }) => event_type);
  expect(types).not.toContain('WRITTEN_AFTERWARDS');
  return types.length;
}

/** With the number of races. */
const kinds = [
  ['the revocation of its grant', revokedGrant, 200],
  ['the expiry of its grant', expiredGrant, 60],
  ['the revocation of its API key', revokedKey, 60],
] as const;

test.each(kinds)('in races beside appends no stream brings what was written after %s', async (_, kind, races) => {
  const sent: number[] = [];
  let begun = 0;
  const race = async (): Promise<void> => {
    while (begun < races) {
      begun += 1;
      sent.push(await kind());
    }
  };
  await Promise.all(Array.from({ length: atOnce }, race));
  expect(sent).toHaveLength(races);
  // Otherwise the streams ended before there was anything to race with.
  expect(sent.filter((events) => events > 0).length).toBeGreaterThan(races / 2);
});
