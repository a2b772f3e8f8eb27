import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { isoTime } from '../../../../src/domain/values/time.ts';
import {
  type Authority,
  beginRotation,
  openAuthority,
  readAuthority,
  rotateAuthority,
} from '../../../../src/service/authority/authority.ts';
import { rotationLeadMs, untrusted, watchAuthority } from '../../../../src/service/authority/authority-watch.ts';
import { ManualClock } from '../../../support/clock.ts';
import { configError } from '../../../support/config-error.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';
import { beforeCalls, startMs } from '../../../support/world.ts';

const digest = Buffer.alloc(32, 7);
const newKey = () => generateKeyPairSync('ed25519').privateKey;

/** A node that watches a store, whose reads can be made to fail. */
async function scene() {
  const clock = new ManualClock(startMs);
  const stored = new MemoryRecordStore();
  let isCut = false;
  const records = beforeCalls(stored, {
    get: () => {
      if (isCut) throw new Error('cut off');
    },
  });
  const key = newKey();
  const authority = await openAuthority(records, key, isoTime(clock.now()));
  const told: string[] = [];
  const watch = watchAuthority({ records, authority, clock, warn: (what) => told.push(what) });
  await watch.start();
  return {
    clock,
    key,
    authority,
    watch,
    told,
    records: stored,
    cut: (value: boolean) => {
      isCut = value;
    },
  };
}

/** Whether the node seals an event of so many milliseconds from now. */
function seals(authority: Authority, clock: ManualClock, inMs = 0): boolean {
  try {
    return authority.sign(digest, isoTime(clock.now() + inMs)) !== '';
  } catch (error) {
    expect(error).toMatchObject({ code: 'unavailable' });
    return false;
  }
}

test('a node that can read the store seals for as long as it runs', async () => {
  const { authority, clock, told } = await scene();
  for (let minutes = 0; minutes < 5; minutes++) {
    expect(seals(authority, clock)).toBe(true);
    await clock.advance(60_000);
  }
  expect(told).toEqual([]);
});

test('a node that cannot read the store seals until its trust ends, and again once it can', async () => {
  const { authority, clock, cut, told } = await scene();
  cut(true);
  await clock.advance(5_000);
  expect(seals(authority, clock)).toBe(true);
  await clock.advance(rotationLeadMs);
  expect(seals(authority, clock)).toBe(false);
  expect(told).toEqual([expect.stringContaining('failed')]);
  cut(false);
  await clock.advance(500);
  expect(seals(authority, clock)).toBe(true);
});

test('a node that was paused during a rotation seals nothing dated after the end of its key', async () => {
  const { authority, clock, records, key } = await scene();
  await beginRotation(records, key);
  // No timer of the node runs from here on.
  clock.jump(rotationLeadMs);
  const { validFrom } = await rotateAuthority(records, key, newKey(), isoTime(clock.now()));
  expect(seals(authority, clock)).toBe(false);
  for (let inMs = -rotationLeadMs; inMs < 1_000; inMs += 250)
    if (seals(authority, clock, inMs)) expect(isoTime(clock.now() + inMs) < validFrom).toBe(true);
  await clock.advance(60_000);
  expect(seals(authority, clock)).toBe(false);
  expect(untrusted(authority)).toContain('AUTHORITY_KEY_FILE');
});

test('a running node stops sealing during a rotation, and warns once', async () => {
  const { authority, clock, records, key, told } = await scene();
  await beginRotation(records, key);
  await clock.advance(5_000);
  expect(untrusted(authority)).toContain('rotation');
  await clock.advance(rotationLeadMs);
  expect(seals(authority, clock)).toBe(false);
  expect(told).toEqual([expect.stringContaining('rotate-authority')]);
  const next = newKey();
  await rotateAuthority(records, key, next, isoTime(clock.now()));
  await clock.advance(5_000);
  expect(untrusted(authority)).toContain('AUTHORITY_KEY_FILE');
  // It goes on to check what the new key seals.
  expect(authority.keys).toHaveLength(2);
  const opened = await openAuthority(records, next, isoTime(clock.now()));
  expect(seals(opened, clock)).toBe(true);
});

test('a node that starts during a rotation seals nothing, whatever its clock says', async () => {
  const { clock, records, key } = await scene();
  await beginRotation(records, key);
  const authority = await openAuthority(records, key, isoTime(clock.now()));
  const watch = watchAuthority({ records, authority, clock, warn: () => {} });
  await watch.start();
  expect(seals(authority, clock)).toBe(false);
  expect(seals(authority, clock, -86_400_000)).toBe(false);
  watch.stop();
});

test('an interrupted rotation can be begun again and finished, also with another key', async () => {
  const { clock, records, key } = await scene();
  await beginRotation(records, key);
  await beginRotation(records, key);
  const next = newKey();
  await rotateAuthority(records, key, next, isoTime(clock.now()));
  expect(await readAuthority(records)).toMatchObject({ rotating: false, keys: [{}, {}] });
  await expect(beginRotation(records, key)).rejects.toMatchObject(configError(/^AUTHORITY_KEY_FILE holds another key/));
  await expect(rotateAuthority(records, key, newKey(), isoTime(clock.now()))).rejects.toMatchObject(
    configError(/^AUTHORITY_KEY_FILE holds another key/),
  );
});

test('a node that has stopped does not read the keys again', async () => {
  const { clock, watch } = await scene();
  watch.stop();
  expect(clock.timers).toBe(0);
});
