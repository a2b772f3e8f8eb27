import { describe, expect, test } from 'vitest';
import { BatchWindow } from '../../../src/actors/batching/batch-window.ts';
import {
  batchEventsMax,
  batchLimits,
  largestBatchEvents,
  mastersInMemoryMax,
  snapshotWhenLeavingEvents,
} from '../../../src/actors/bounds.ts';
import type { LedgerActor } from '../../../src/actors/ledger/ledger-actor.ts';
import { LedgerError } from '../../../src/domain/errors.ts';
import { formatRow, parseRow } from '../../../src/domain/event/row.ts';
import type { LedgerStore, Snapshot } from '../../../src/store/ledger-store.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import {
  append,
  buyer,
  closeMaster,
  createMaster,
  delegate,
  grant,
  ledgerId,
  masterId,
  openLedger,
  revoke,
  siblingId,
  stranger,
  uuid,
} from '../../support/commands.ts';
import { emptyLedgerData, type MemoryLedgerData } from '../../support/memory-store/ledger-data.ts';
import { codeOf, faultsOf, rig, startMs, storeWith } from '../../support/world.ts';

/** A node that counts the events it reads, over data that outlives it. */
function counting(data: MemoryLedgerData, clock = new ManualClock(startMs), replaced: Partial<LedgerStore> = {}) {
  const read = { ledger: 0, master: 0, snapshots: 0 };
  const world = rig({
    clock,
    data,
    wrap: (memory) =>
      storeWith(memory, {
        read: async (ledger, from, limit) => {
          const page = await memory.read(ledger, from, limit);
          read.ledger += page.length;
          return page;
        },
        readScope: async (ledger, scope, page) => {
          const found = await memory.readScope(ledger, scope, page);
          read.master += found.entries.length;
          return found;
        },
        saveSnapshot: async (owner, snapshot) => {
          read.snapshots++;
          await memory.saveSnapshot(owner, snapshot);
        },
        ...replaced,
      }),
  });
  return { ...world, read };
}

async function grow(actor: LedgerActor, events: number, atOnce = 200): Promise<void> {
  for (let left = events; left > 0; left -= atOnce)
    await Promise.all(Array.from({ length: Math.min(left, atOnce) }, () => actor.submit(append())));
}

async function open(actor: LedgerActor): Promise<void> {
  await Promise.all(
    [openLedger(), createMaster(), createMaster({ masterId: siblingId })].map((one) => actor.submit(one)),
  );
}

describe('an actor that leaves memory and comes back', () => {
  test('knows what it knew: grants, closings, places', async () => {
    const data = emptyLedgerData();
    const before = counting(data);
    const first = before.newActor();
    await open(first);
    await first.submit(grant({ access: 'write' }));
    await first.submit(grant({ scope: 'ledger', role: 'AUDITOR', delegateActorId: stranger, linkId: uuid(1) }));
    await grow(first, snapshotWhenLeavingEvents);
    await first.submit(closeMaster({ masterId: siblingId }));
    await settled();
    expect(first.passivate(startMs)).toBe(true);
    expect(first.stopped).toBe(true);
    await settled();
    expect([...data.snapshots.keys()]).toEqual([ledgerId, masterId]);

    const after = counting(data);
    const second = after.newActor();
    const codes = [
      append({ actorId: delegate }),
      append({ actorId: stranger }),
      append({ masterId: siblingId }),
      append({ actorId: buyer }),
      revoke(),
      append({ actorId: delegate }),
    ].map((one) => codeOf(second.submit(one)));
    expect(await Promise.all(codes)).toEqual([
      'carried out',
      'permission_denied',
      'master_closed',
      'carried out',
      'carried out',
      'not_found',
    ]);
    expect(faultsOf(await after.log())).toEqual([]);
    // The event of each snapshot, and what stands behind it.
    expect(after.read.ledger).toBeLessThan(6);
    expect(after.read.master).toBeLessThan(6);
  });

  test('saves nothing where reading the tail again is cheaper, and is right all the same', async () => {
    const data = emptyLedgerData();
    const before = counting(data);
    const first = before.newActor();
    await open(first);
    await grow(first, 10);
    await settled();
    expect(first.passivate(startMs)).toBe(true);
    await settled();
    expect(before.read.snapshots).toBe(0);
    const after = counting(data);
    expect((await after.newActor().submit(append())).event.seq).toBe(14);
    expect(faultsOf(await after.log())).toEqual([]);
  });

  test('leaves when it is idle, also if the clock was set back meanwhile', async () => {
    const clock = new ManualClock(startMs);
    const { newActor } = counting(emptyLedgerData(), clock);
    const actor = newActor();
    await actor.submit(openLedger());
    await settled();
    clock.jump(-3_600_000);
    expect(actor.passivate(startMs - 3_600_001)).toBe(false);
    expect(actor.passivate(startMs - 3_600_000)).toBe(true);
  });

  test('does not leave while it has something to do', async () => {
    const { newActor } = counting(emptyLedgerData());
    const actor = newActor();
    const opening = actor.submit(openLedger());
    expect(actor.passivate(startMs)).toBe(false);
    await opening;
    await settled();
    expect(actor.passivate(startMs - 1)).toBe(false);
    expect(actor.passivate(startMs)).toBe(true);
    expect(await codeOf(actor.submit(append()))).toBe('unavailable');
  });

  test('closing it waits for what was submitted', async () => {
    const { newActor, log } = counting(emptyLedgerData());
    const actor = newActor();
    const all = Promise.all([openLedger(), createMaster(), append(), append()].map((one) => actor.submit(one)));
    await actor.close();
    expect(await log()).toHaveLength(5);
    await all;
    await actor.close();
  });
});

describe('the tail behind a snapshot', () => {
  /** How many events a new node reads to take the ledger and its master up. */
  async function tailOf(data: MemoryLedgerData): Promise<{ ledger: number; master: number }> {
    const { newActor, read } = counting(data);
    expect(await codeOf(newActor().submit(append({ actorId: stranger })))).toBe('not_found');
    return read;
  }

  test.each([batchEventsMax, largestBatchEvents])(
    'stays below 1,024 events, for the ledger and for its master, wherever the node crashes: commits of up to %i',
    async (maxEvents) => {
      const data = emptyLedgerData();
      const { newActor, parts, meter } = counting(data);
      const batches = new BatchWindow(parts.clock, { ...batchLimits.commitsTogether, maxEvents });
      const actor = newActor({ batches });
      await open(actor);
      for (const events of [400, 100, 100, 300, 300, 900]) {
        await grow(actor, events, 300);
        await settled();
        const { ledger, master } = await tailOf(data);
        expect(ledger).toBeLessThanOrEqual(512);
        expect(master).toBeLessThanOrEqual(512);
      }
      expect((await tailOf(data)).ledger).toBeGreaterThan(0);
      expect(Math.max(...meter.batches)).toBe(maxEvents);
    },
  );

  test('stays below 1,024 events where a save fails, and is tried again', async () => {
    const data = emptyLedgerData();
    let failures = 0;
    const { newActor, memory } = counting(data, new ManualClock(startMs), {
      saveSnapshot: async (owner, snapshot) => {
        if (failures < 4) {
          failures++;
          throw new LedgerError('unavailable', 'The store does not answer.');
        }
        await memory.saveSnapshot(owner, snapshot);
      },
    });
    const actor = newActor();
    await open(actor);
    await grow(actor, 512);
    await settled();
    expect(failures).toBeGreaterThanOrEqual(2);
    await grow(actor, 3 * batchEventsMax);
    await settled();
    expect(data.snapshots.size).toBe(2);
    const { ledger, master } = await tailOf(data);
    expect(ledger).toBeLessThan(1_024);
    expect(master).toBeLessThan(1_024);
  });

  test('an empty ledger saves none', async () => {
    const { newActor, read } = counting(emptyLedgerData());
    const actor = newActor();
    expect(await codeOf(actor.submit(append()))).toBe('not_found');
    await actor.close();
    expect(read.snapshots).toBe(0);
  });
});

describe('a snapshot is only a cache', () => {
  /** A log of 100 events with snapshots of the ledger and its master, made wrong as the test says. */
  async function withSnapshots(change: (snapshot: Snapshot) => Snapshot) {
    const data = emptyLedgerData();
    const { newActor } = counting(data);
    const actor = newActor();
    await open(actor);
    await actor.submit(grant({ access: 'write' }));
    await grow(actor, 100);
    await actor.close();
    expect(data.snapshots.size).toBe(2);
    for (const [owner, snapshot] of data.snapshots) data.snapshots.set(owner, change(snapshot));
    return data;
  }

  test.each<[string, (snapshot: Snapshot) => Snapshot, boolean]>([
    ['as it was saved', (snapshot) => snapshot, true],
    ['of another fold version', (snapshot) => ({ ...snapshot, foldVersion: snapshot.foldVersion + 1 }), false],
    ['of another hash', (snapshot) => ({ ...snapshot, hash: 'ab'.repeat(32) }), false],
    [
      'of a log that had another event there',
      (snapshot) => {
        const hash = 'ab'.repeat(32);
        return { ...snapshot, hash, state: snapshot.state.replaceAll(snapshot.hash, hash) };
      },
      false,
    ],
    ['of an event that is not there', (snapshot) => ({ ...snapshot, seq: 5_000 }), false],
    ['of another event', (snapshot) => ({ ...snapshot, seq: snapshot.seq - 1 }), false],
    [
      'whose state is of another event',
      (snapshot) => ({ ...snapshot, state: snapshot.state.replace(/"seq":\d+/, '"seq":7') }),
      false,
    ],
    ['whose state is no JSON', (snapshot) => ({ ...snapshot, state: '{' }), false],
    ['whose state is something else', (snapshot) => ({ ...snapshot, state: '[]' }), false],
    ['whose state is nothing', (snapshot) => ({ ...snapshot, state: 'null' }), false],
  ])('%s', async (_, change, used) => {
    const after = counting(await withSnapshots(change));
    const actor = after.newActor();
    const codes = [append({ actorId: delegate }), append({ actorId: stranger })].map((one) =>
      codeOf(actor.submit(one)),
    );
    expect(await Promise.all(codes)).toEqual(['carried out', 'not_found']);
    expect(faultsOf(await after.log())).toEqual([]);
    expect([after.read.ledger > 100, after.read.master > 100]).toEqual(used ? [false, false] : [true, true]);
  });

  test('one of the other master is not taken for this one', async () => {
    const data = await withSnapshots((snapshot) => snapshot);
    const other = data.snapshots.get(masterId);
    if (other === undefined) throw new Error('no snapshot');
    data.snapshots.set(siblingId, other);
    const after = counting(data);
    expect((await after.newActor().submit(append({ masterId: siblingId }))).event.master?.seq).toBe(1);
  });
});

describe('masters in memory', () => {
  test('are bounded; one that left is loaded again and goes on where it was', async () => {
    const data = emptyLedgerData();
    const { newActor, read, log } = counting(data);
    const actor = newActor();
    await open(actor);
    const count = mastersInMemoryMax + 50;
    for (let done = 0; done < count; done += 200) {
      const ids = Array.from({ length: Math.min(200, count - done) }, (_, index) => uuid(0x1_0000 + done + index));
      await Promise.all(ids.map((id) => actor.submit(createMaster({ masterId: id }))));
    }
    read.master = 0;
    await actor.submit(append({ masterId: uuid(0x1_0000 + count - 1) }));
    expect(read.master).toBe(0);
    const { event } = await actor.submit(append({ masterId }));
    expect(read.master).toBe(1);
    expect(event.master?.seq).toBe(1);
    expect(read.snapshots).toBeLessThan(6);
    expect(faultsOf(await log())).toEqual([]);
  });
});

describe('a log that does not hold together', () => {
  /** A ledger of some events, one of whose rows is changed behind the service's back. */
  async function tampered(seq: number, change: (row: string, rows: readonly string[]) => string | null) {
    const data = emptyLedgerData();
    const { newActor } = counting(data);
    const actor = newActor();
    await open(actor);
    await actor.submit(grant({ access: 'read' }));
    await grow(actor, 5);
    await actor.close();
    const entries = data.ledgers.get(ledgerId)?.entries;
    if (entries === undefined) throw new Error('no ledger');
    const rows = [...entries.values()].map(({ row }) => row);
    const row = change(rows[seq] ?? '', rows);
    if (row === null) entries.delete(seq);
    else entries.set(seq, { seq, row });
    return counting(data);
  }

  const damages: [string, number, (row: string, rows: readonly string[]) => string | null][] = [
    ['an event is missing', 2, () => null],
    ['the newest event is missing', 9, () => null],
    ['an event stands twice', 5, (_, rows) => rows[6] ?? ''],
    ['a payload was changed', 4, (row) => row.replaceAll('"read"', '"write"')],
    ['a payload was changed and its hash too', 4, (row) => resealed(row, { payload: '{"role":"OWNER"}' })],
    ['a row is no event', 3, () => 'svc1\n{}\n{}\n\n{}'],
    ['a genesis was changed', 0, (row) => row.replaceAll(buyer, stranger)],
    ['an event is of another ledger', 1, (row) => resealed(row, { ledgerId: uuid(0x2) })],
  ];

  test.each(damages)('%s: the ledger refuses, says where, and does not guess', async (_, seq, change) => {
    const { newActor, data, meter } = await tampered(seq, change);
    const count = data.ledgers.get(ledgerId)?.entries.size;
    for (const command of [append(), append({ actorId: delegate }), append({ actorId: stranger })]) {
      const actor = newActor();
      await expect(actor.submit(command)).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining('Stored events of this ledger are damaged, so nothing was written.'),
        details: { ledger_id: ledgerId, seq },
      });
      expect(actor.stopped).toBe(true);
    }
    expect(data.ledgers.get(ledgerId)?.entries.size).toBe(count);
    expect(meter.batches).toEqual([]);
  });

  test('a head that is not the newest event: the ledger refuses', async () => {
    const { newActor, data } = await tampered(0, (row) => row);
    const ledger = data.ledgers.get(ledgerId);
    if (ledger?.head == null) throw new Error('no ledger');
    ledger.head = { ...ledger.head, hash: 'ab'.repeat(32) };
    expect(await codeOf(newActor().submit(append()))).toBe('unavailable');
  });

  test('a row of an unknown format makes the ledger unavailable', async () => {
    const { newActor } = await tampered(3, (row) => row.replace('svc1', 'svc2'));
    expect(await codeOf(newActor().submit(append()))).toBe('unavailable');
  });

  test('a master whose events are listed wrongly refuses', async () => {
    const data = emptyLedgerData();
    const { newActor } = counting(data);
    const actor = newActor();
    await open(actor);
    await grow(actor, 3);
    const seqs = data.ledgers.get(ledgerId)?.scopes.get(`master:${masterId}`);
    seqs?.delete(4);
    expect(await codeOf(counting(data).newActor().submit(append()))).toBe('unavailable');
    seqs?.clear();
    for (const seq of [2, 4, 5, 6, 77]) seqs?.add(seq);
    expect(await codeOf(counting(data).newActor().submit(append()))).toBe('unavailable');
    expect(
      await codeOf(
        counting(data)
          .newActor()
          .submit(append({ masterId: siblingId })),
      ),
    ).toBe('carried out');
  });
});

/** The row of an event with other fields, under the hashes that it had. */
function resealed(row: string, change: Partial<ReturnType<typeof parseRow>>): string {
  return formatRow({ ...parseRow(row), ...change });
}
