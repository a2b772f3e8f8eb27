import { describe, expect, it } from 'vitest';
import { eventContent, readEvent } from '../../../src/client/event.ts';
import type { Event, VerifyOptions } from '../../../src/client/index.ts';
import { contentHash, contentJson } from '../../../src/domain/event/content.ts';
import { logVectors } from '../../support/log-vectors.ts';
import {
  at,
  chain,
  changed,
  checkpointOf,
  ofMasterA,
  otherValue,
  resealed,
  verify,
} from '../../support/vector-chain.ts';

describe('the order of events', () => {
  it.each(chain.slice(0, -1).map((_, index) => index))('a ledger without event %i is not valid', async (index) => {
    const { verdict, issues } = await verify(chain.filter((_, position) => position !== index));
    // Without its first event a list might as well be the rest of a longer one: nothing is wrong, and it is not whole.
    expect(verdict).toBe(index === 0 ? 'incomplete' : 'invalid');
    if (index > 0) expect(issues.some(({ type }) => type === 'missing_event')).toBe(true);
  });

  it.each(chain.slice(0, -1).map((_, index) => index))('event %i swapped with the next one is found', async (index) => {
    const swapped = [...chain];
    swapped.splice(index, 2, at(index + 1), at(index));
    expect((await verify(swapped)).verdict).toBe('invalid');
  });

  it.each(chain.map((_, index) => index))('event %i given twice is found', async (index) => {
    const { verdict, issues } = await verify([...chain.slice(0, index + 1), ...chain.slice(index)]);
    expect(verdict).toBe('invalid');
    expect(issues.some(({ type }) => type === 'broken_link')).toBe(true);
  });

  it('a list without its end looks whole to an older checkpoint, unless a later hash is known', async () => {
    const short = chain.slice(0, 6);
    expect((await verify(short, { checkpoint: checkpointOf(6) })).verdict).toBe('valid');
    const { verdict, issues } = await verify(short, { mustContain: [at(2).hash, at(7).hash] });
    expect(verdict).toBe('invalid');
    expect(issues).toMatchObject([{ type: 'missing_event' }]);
    expect(issues[0]?.detail).toContain(at(7).hash);
  });

  it('a list without its start is incomplete, and the rest is checked', async () => {
    const { verdict, incomplete, checked } = await verify(chain.slice(4));
    expect(verdict).toBe('incomplete');
    expect(incomplete.map(({ type, count }) => [type, count])).toEqual([
      ['start_unknown', 1],
      ['content_unchecked', 2],
      ['hash_unchecked', 1],
    ]);
    expect(checked).toMatchObject({ events: 5, contentHashes: 3, chainHashes: 4, actorSignatures: 5 });
  });

  it.each(['ledger', 'master'] as const)('a whole %s without its start is invalid', async (kind) => {
    const list = kind === 'master' ? ofMasterA : chain;
    expect((await verify(list, { kind, extent: 'all' })).issues).toEqual([]);
    const { verdict, issues } = await verify(list.slice(1), { kind, extent: 'all' });
    expect(verdict).toBe('invalid');
    expect(issues[0]).toMatchObject({ type: 'missing_event', eventId: list[1]?.id });
  });

  it('a change in a list without its start is found', async () => {
    expect((await verify(changed(6, { actorType: 'human' }).slice(4))).verdict).toBe('invalid');
  });

  it('events of two ledgers in one list are found', async () => {
    const other = '0193a000-0000-7000-8000-000000000009';
    const moved = resealed(
      chain.map((event, index) => (index >= 5 ? { ...event, ledgerId: other } : event)),
      5,
    );
    expect((await verify(moved)).issues.map(({ type }) => type)).toContain('broken_link');
  });

  it.each(['ledger', 'master', 'segment'] as const)('an empty list of a %s is incomplete', async (kind) => {
    const found = await verify([], { kind });
    expect(found).toMatchObject({ verdict: 'incomplete', verified: false, checked: { events: 0 }, head: null });
    expect(found.incomplete.map(({ type }) => type)).toEqual(['start_unknown']);
  });

  it('an empty list is invalid if a hash is known', async () => {
    expect((await verify([], { mustContain: [at(2).hash] })).verdict).toBe('invalid');
  });
});

describe('the events of one master', () => {
  const options: Partial<VerifyOptions> = { kind: 'master' };

  it('form a chain of contents, and their chain hashes are reported as unchecked', async () => {
    const [log] = logVectors.masters;
    const { verdict, incomplete, checked } = await verify(ofMasterA, { ...options, checkpoint: checkpointOf(4, log) });
    expect(verdict).toBe('incomplete');
    expect(incomplete.map(({ type }) => type)).toEqual(['hash_unchecked']);
    expect(checked).toMatchObject({ events: 4, contentHashes: 4, actorSignatures: 4 });
  });

  it.each([1, 2])('are invalid without event %i', async (index) => {
    const { verdict, issues } = await verify(
      ofMasterA.filter((_, position) => position !== index),
      options,
    );
    expect(verdict).toBe('invalid');
    expect(issues).toContainEqual(expect.objectContaining({ type: 'missing_event' }));
  });

  it('are incomplete without the first one', async () => {
    const { incomplete } = await verify(ofMasterA.slice(1), options);
    expect(incomplete.map(({ type }) => type)).toContain('start_unknown');
  });

  it('are invalid with an event of a sibling', async () => {
    const sibling = at(5);
    expect((await verify([...ofMasterA.slice(0, 2), sibling, ...ofMasterA.slice(2)], options)).verdict).toBe('invalid');
  });

  it('are invalid if renumbered to hide a gap', async () => {
    const [first, , third] = ofMasterA;
    if (first === undefined || third === undefined) throw new Error('the vectors changed');
    const moved = { ...third, masterSeq: 1 };
    const content = contentHash(contentJson(eventContent(readEvent(moved), 'f'.repeat(64))));
    expect((await verify([first, { ...moved, contentHash: content }], options)).verdict).toBe('invalid');
  });

  it('are invalid with any changed field but the chain hash', async () => {
    for (const [index, event] of ofMasterA.entries()) {
      for (const name of Object.keys(event) as (keyof Event)[]) {
        if (name === 'hash') continue;
        const list = ofMasterA.map((held, at) =>
          at === index ? { ...held, [name]: otherValue(name, held[name]) } : held,
        );
        expect((await verify(list, options)).verdict, `${name} of ${index}`).toBe('invalid');
      }
    }
  });
});

describe('a segment', () => {
  it('may have gaps, and is never taken for whole', async () => {
    const { verdict, issues, incomplete } = await verify([at(0), at(2), at(4), at(7)], { kind: 'segment' });
    expect(verdict).toBe('incomplete');
    expect(issues).toEqual([]);
    expect(incomplete).toContainEqual({
      type: 'middle_unknown',
      detail: '1 event is missing before seq 2: a segment, or left out',
      eventId: at(2).id,
      count: 3,
    });
  });

  it('may have gaps within one master, and contains that master only', async () => {
    const options = { kind: 'master', extent: 'some' } as const;
    const some = ofMasterA.filter((_, position) => position !== 1);
    const { verdict, incomplete } = await verify(some, options);
    expect(verdict).toBe('incomplete');
    expect(incomplete.map(({ type }) => type)).toContain('middle_unknown');
    expect((await verify([...some.slice(0, 1), at(5), ...some.slice(1)], options)).verdict).toBe('invalid');
  });

  it.each([3, 4])('reports no gap at its start %i', async (start) => {
    const { verdict, incomplete } = await verify(chain.slice(start), { kind: 'segment' });
    expect(verdict).toBe('incomplete');
    expect(incomplete.map(({ type }) => type)).not.toContain('middle_unknown');
  });

  it('is invalid if a master lacks its first event and no event of the ledger is missing', async () => {
    const late = chain.map((event) =>
      event.masterId === at(3).masterId ? { ...event, masterSeq: (event.masterSeq ?? 0) + 1 } : event,
    );
    for (const kind of ['ledger', 'segment'] as const) {
      const { issues } = await verify(resealed(late, 3), { kind });
      expect(issues).toContainEqual(expect.objectContaining({ type: 'missing_event', eventId: at(3).id }));
    }
  });

  it('is invalid if a master lacks an event that no gap can contain', async () => {
    for (const start of [0, 3]) {
      const index = chain.findIndex((event, place) => place > start + 1 && (event.masterSeq ?? 0) > 1);
      const lacking = chain.map((event, place) =>
        place >= index && event.masterId === at(index).masterId
          ? { ...event, masterSeq: (event.masterSeq ?? 0) + 1 }
          : event,
      );
      const found = await verify(resealed(lacking, index).slice(start), { kind: 'segment' });
      expect(found.issues.map(({ type }) => type)).toContain('missing_event');
    }
  });

  it('is invalid out of order', async () => {
    expect((await verify([at(0), at(4), at(2)], { kind: 'segment' })).verdict).toBe('invalid');
  });
});
