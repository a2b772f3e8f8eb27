import { expect, test } from 'vitest';
import { actorService } from '../../../../src/service/actors/actors.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import type { RecordStore } from '../../../../src/store/record-store.ts';
import { bareActor } from '../../../support/actor-record.ts';
import { buyer, uuid } from '../../../support/commands.ts';
import { identitiesIn } from '../../../support/identities.ts';

/** Actors of one list. */
const actorsEach = 60_000;

/** A store with two equally long lists of actors, who were created in turn. It counts what is read. */
function networkStore() {
  const read = { rows: 0, records: 0 };
  const find: RecordStore['find'] = async (_, { value }, { limit, offset = 0, after, descending = false }) => {
    const numberOf = (at: number) => 2 * at + (value === 'none' ? 1 : 0);
    const last = after === undefined ? null : (Number(after.order) - numberOf(0)) / 2;
    const step = descending ? -1 : 1;
    const first = (last === null ? (descending ? actorsEach - 1 : 0) : last + step) + offset * step;
    const places = Array.from({ length: limit }, (_, n) => first + n * step);
    const found = places.filter((at) => at >= 0 && at < actorsEach).map(numberOf);
    read.rows += offset + found.length;
    read.records += found.length;
    return found.map((number) => {
      const id = uuid(number);
      const order = String(number).padStart(6, '0');
      const actor = { ...bareActor(id), createdAt: order };
      return { kind: 'actor', id, version: '1', value: JSON.stringify(actor), order };
    });
  };
  return { read, identities: identitiesIn({ find } as RecordStore, Date.now) };
}

test.each([
  ['asc', 0],
  ['asc', 1_000],
  ['asc', 100_000],
  ['desc', 1_000],
  ['desc', 100_000],
])(
  'a page of the network in order %s at offset %i reads little more than it skips and shows',
  async (order, offset) => {
    const { read, identities } = networkStore();
    const call = { caller: { actorId: buyer, world: 'sandbox' }, walk: unboundedWalk() } as unknown as Call;
    const { listNetworkActors } = actorService(identities, async () => {});
    const request = { limit: 1_000, offset, order } as Parameters<typeof listNetworkActors>[0];
    const { actors } = await listNetworkActors(request, call);
    const numbers = Array.from({ length: 1_000 }, (_, n) => offset + n);
    const shown = order === 'asc' ? numbers : numbers.map((number) => 2 * actorsEach - 1 - number);
    expect(actors.map(({ actorId }) => actorId)).toEqual(shown.map(uuid));
    expect(read.records).toBeLessThan(1_300);
    expect(read.rows).toBeLessThan(offset + 1_000 + 5_000);
  },
);
