import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { isoTime } from '../../../../src/domain/values/time.ts';
import {
  type Authority,
  beginRotation,
  confirmAuthority,
  openAuthority,
  publicKeyOf,
  readAuthority,
  rotateAuthority,
  signOlderList,
} from '../../../../src/service/authority/authority.ts';
import { watchAuthority } from '../../../../src/service/authority/authority-watch.ts';
import {
  type AuthorityKeyRecord,
  authorityFingerprint,
  listDigest,
  signList,
  signStart,
} from '../../../../src/service/authority/key-list.ts';
import { openLogIdentity } from '../../../../src/service/log-identity/log-identity.ts';
import { type LogRecord, readLog, writeLog } from '../../../../src/service/log-identity/log-record.ts';
import { onUnreadable } from '../../../../src/store/unreadable-record.ts';
import { ManualClock } from '../../../support/clock.ts';
import { configError } from '../../../support/config-error.ts';
import { logScene, newSigningKey } from '../../../support/log-stores.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';
import { startMs } from '../../../support/world.ts';

/** The record as it is stored. */
interface Stored {
  readonly keys: readonly AuthorityKeyRecord[];
  readonly listSig?: string;
}

const newKey = () => generateKeyPairSync('ed25519').privateKey;
const dayMs = 86_400_000;
const at = (days: number) => isoTime(startMs + days * dayMs);

/** What the writer to the store has: a key, but none of the service. */
const forged = newKey();
let records: MemoryRecordStore;
let first: KeyObject;
let second: KeyObject;

beforeEach(async () => {
  records = new MemoryRecordStore();
  [first, second] = [newKey(), newKey()];
  await openAuthority(records, first, at(0));
});

async function stored(): Promise<Stored> {
  return JSON.parse((await records.get('authority', 'keys'))?.value ?? '') as Stored;
}

async function store(value: unknown): Promise<void> {
  const { version } = (await records.get('authority', 'keys')) ?? { version: 'absent' };
  const json = JSON.stringify(value);
  expect((await records.put({ kind: 'authority', id: 'keys', replaces: version, value: json, lookups: [] })).ok).toBe(
    true,
  );
}

/** The key of `privateKey` under a kid, whose start `before` has signed. */
function keyOf(privateKey: KeyObject, kid: string, before: KeyObject | null, days: number): AuthorityKeyRecord {
  const key = { kid, publicKey: publicKeyOf(privateKey), validFrom: at(days), validTo: null };
  return { ...key, startSig: before === null ? null : signStart(key, before) };
}

function startedBy(before: KeyObject, key: AuthorityKeyRecord): AuthorityKeyRecord {
  return { ...key, startSig: signStart(key, before) };
}

/** The digest that ends what is shown. */
function digestIn(shown: string): string {
  return shown.slice(shown.lastIndexOf('\n') + 1);
}

/** Each takes the list of two keys, and returns what somebody without any of them can make of it. */
const tamperings: readonly (readonly [what: string, change: (list: Stored) => Stored])[] = [
  [
    'a key put before the others',
    (list) => {
      const [one, two] = list.keys as [AuthorityKeyRecord, AuthorityKeyRecord];
      return { ...list, keys: [keyOf(forged, 'svc:authority#key-9', null, -9), startedBy(forged, one), two] };
    },
  ],
  [
    'a key put between them',
    (list) => {
      const [one, two] = list.keys as [AuthorityKeyRecord, AuthorityKeyRecord];
      const key = keyOf(forged, 'svc:authority#key-9', forged, 1);
      return { ...list, keys: [one, key, startedBy(forged, two)] };
    },
  ],
  [
    'a key put in place of the first',
    (list) => {
      const [one, two] = list.keys as [AuthorityKeyRecord, AuthorityKeyRecord];
      return { ...list, keys: [{ ...one, publicKey: publicKeyOf(forged) }, startedBy(forged, two)] };
    },
  ],
  ['the first key left out', (list) => ({ ...list, keys: list.keys.slice(1) })],
  [
    'the end of the first key moved',
    (list) => ({ ...list, keys: list.keys.map((key) => (key.validTo === null ? key : { ...key, validTo: at(99) })) }),
  ],
  [
    'the start of the first key moved',
    (list) => ({ ...list, keys: list.keys.map((key, n) => (n === 0 ? { ...key, validFrom: at(-99) } : key)) }),
  ],
  [
    'the start of the last key moved',
    (list) => ({ ...list, keys: list.keys.map((key, n) => (n === 1 ? { ...key, validFrom: at(-99) } : key)) }),
  ],
  [
    'another name of the first key',
    (list) => ({ ...list, keys: list.keys.map((key, n) => (n === 0 ? { ...key, kid: 'svc:authority#key-9' } : key)) }),
  ],
  [
    'a signature of the start of the first key',
    (list) => ({ ...list, keys: list.keys.map((key, n) => (n === 0 ? { ...key, startSig: 'AAAA' } : key)) }),
  ],
  ['the last key ended', (list) => ({ ...list, keys: list.keys.map((key) => ({ ...key, validTo: at(3) })) })],
  ['the signature taken off', ({ keys }) => ({ keys })],
  ['the signature of another key', (list) => ({ ...list, listSig: signList(list.keys, forged) })],
  ['a signature that is none', (list) => ({ ...list, listSig: 'AAAA' })],
];

describe('a list of two keys', () => {
  beforeEach(async () => {
    await rotateAuthority(records, first, second, at(2));
  });

  test('is believed by a node with the newest key, as it was written', async () => {
    const { keys } = await openAuthority(records, second, at(3));
    expect(keys.map(({ publicKey }) => publicKey)).toEqual([publicKeyOf(first), publicKeyOf(second)]);
    expect(await stored()).toMatchObject({ listSig: signList(keys, second) });
  });

  test.for(tamperings)(
    'with %s stops the start, the commands and the log, and nothing is written',
    async ([, change]) => {
      await store(change(await stored()));
      const { version } = await readAuthority(records);
      const refused = configError(/authority, id keys.*[Rr]estore the record from a backup/);
      await expect(openAuthority(records, second, at(3))).rejects.toMatchObject(refused);
      await expect(beginRotation(records, second)).rejects.toMatchObject(refused);
      await expect(rotateAuthority(records, second, newKey(), at(3))).rejects.toMatchObject(refused);
      const { parts } = await logScene();
      await expect(openLogIdentity({ ...parts, records, authorityKey: second })).rejects.toMatchObject(refused);
      expect((await readAuthority(records)).version).toBe(version);
      expect((await readLog(records)).log).toBeNull();
    },
  );

  test('with a key put behind the others, or of another service, is no list of the key in AUTHORITY_KEY_FILE', async () => {
    const list = await stored();
    const last = keyOf(forged, 'svc:authority#key-3', forged, 3);
    const keys = [...list.keys, last];
    const other = new MemoryRecordStore();
    await openAuthority(other, forged, at(0));
    const others = JSON.parse((await other.get('authority', 'keys'))?.value ?? '') as Stored;
    for (const changed of [{ keys, listSig: signList(keys, forged) }, others]) {
      await store(changed);
      await expect(openAuthority(records, second, at(3))).rejects.toMatchObject(
        configError(/^AUTHORITY_KEY_FILE holds another key/),
      );
    }
  });
});

test('an older list that lacks the newest key is refused by a node that has this key', async () => {
  const before = await stored();
  await rotateAuthority(records, first, second, at(2));
  await store(before);
  await expect(openAuthority(records, second, at(3))).rejects.toMatchObject(
    configError(/^AUTHORITY_KEY_FILE holds another key/),
  );
});

describe('a list that a version before 0.2.0 wrote', () => {
  test('of one key is signed after the start has checked the log, also in the middle of a rotation', async () => {
    const { keys, listSig } = await stored();
    for (const more of [{}, { rotating: true }]) {
      await store({ keys, ...more });
      await openAuthority(records, first, at(1));
      expect(await stored()).toEqual({ keys, ...more });
      await signOlderList(records, first);
      expect(await stored()).toEqual({ keys, listSig, ...more });
    }
  });

  test('of one key is refused where the key is not as a first key is', async () => {
    const [key] = (await stored()).keys;
    for (const change of [{ validTo: at(9) }, { kid: 'svc:authority#key-2' }, { startSig: 'AAAA' }]) {
      await store({ keys: [{ ...key, ...change }] });
      await expect(openAuthority(records, first, at(1))).rejects.toMatchObject(configError(/authority confirm/));
    }
  });

  test('of two keys must be confirmed by the digest that is shown with it', async () => {
    await rotateAuthority(records, first, second, at(2));
    const { keys, listSig } = await stored();
    await store({ keys });
    await expect(openAuthority(records, second, at(3))).rejects.toMatchObject(
      configError(/`ledger-trust authority confirm/),
    );
    const shown = await confirmAuthority(records, second, undefined);
    for (const key of keys) {
      expect(shown).toContain(`${key.kid} ${authorityFingerprint(key)} from ${key.validFrom}`);
      expect(shown).not.toContain('somebody has changed it');
    }
    const digest = digestIn(shown);
    for (const wrong of ['', digest.slice(1), authorityFingerprint(keys[1] as AuthorityKeyRecord)])
      await expect(confirmAuthority(records, second, wrong)).rejects.toMatchObject(configError(/another digest/));
    expect(await stored()).toEqual({ keys });
    await confirmAuthority(records, second, digest);
    expect(await stored()).toEqual({ keys, listSig });
    expect((await openAuthority(records, second, at(3))).keys).toEqual(keys);
    expect(await confirmAuthority(records, second, undefined)).toContain('nothing needs to be confirmed');
  });

  test('is confirmed only with its newest key, and only if there is one', async () => {
    await rotateAuthority(records, first, second, at(2));
    const { keys } = await stored();
    await store({ keys });
    const print = authorityFingerprint(keys[1] as AuthorityKeyRecord);
    await expect(confirmAuthority(records, first, undefined)).rejects.toMatchObject(
      configError(new RegExp(`^AUTHORITY_KEY_FILE holds another key than svc:authority#key-2 .fingerprint ${print}`)),
    );
    await expect(confirmAuthority(new MemoryRecordStore(), first, undefined)).rejects.toMatchObject(
      configError(/no authority yet/),
    );
  });

  test('is shown with a warning if its signature is of another list', async () => {
    await rotateAuthority(records, first, second, at(2));
    const { keys, listSig } = await stored();
    await store({ keys: keys.map((key, n) => (n === 0 ? { ...key, validFrom: at(-99) } : key)), listSig });
    expect(await confirmAuthority(records, second, undefined)).toContain('somebody has changed it');
  });

  test('is not confirmed if the date of its first key was moved after it was shown', async () => {
    await rotateAuthority(records, first, second, at(2));
    const { keys } = await stored();
    await store({ keys });
    const digest = digestIn(await confirmAuthority(records, second, undefined));
    const moved = { keys: keys.map((key, n) => (n === 0 ? { ...key, validFrom: at(-99) } : key)) };
    await store(moved);
    await expect(confirmAuthority(records, second, digest)).rejects.toMatchObject(configError(/another digest/));
    expect(await stored()).toEqual(moved);
  });

  test.for<readonly [what: string, why: RegExp, change: Partial<AuthorityKeyRecord>, at: number]>([
    ['whose first key has not ended', /key-1 does not end where .*key-2 begins/, { validTo: null }, 0],
    ['whose first key ends later', /key-1 does not end where .*key-2 begins/, { validTo: at(9) }, 0],
    ['whose newest key has ended', /key-2, the newest key, has ended/, { validTo: at(9) }, 1],
    ['whose first key has another name', /key 1 is named svc:authority#key-9/, { kid: 'svc:authority#key-9' }, 0],
    ['whose first key has a signed start', /the start of .*key-1.* is signed/, { startSig: 'AAAA' }, 0],
  ])('is neither shown nor confirmed %s', async ([, why, change, place]) => {
    await rotateAuthority(records, first, second, at(2));
    const { keys } = await stored();
    const changed = keys.map((key, n) => (n === place ? { ...key, ...change } : key));
    await store({ keys: changed });
    for (const digest of [undefined, Buffer.from(listDigest(changed)).toString('hex')])
      await expect(confirmAuthority(records, second, digest)).rejects.toMatchObject(configError(why));
    expect(await stored()).toEqual({ keys: changed });
  });

  test('of two keys is not confirmed if a key does not descend from the one before', async () => {
    await rotateAuthority(records, first, second, at(2));
    const { keys } = await stored();
    const torn = keys.map((key) => ({ ...key, startSig: key.startSig === null ? null : signList(keys, first) }));
    await store({ keys: torn });
    const digest = Buffer.from(listDigest(torn)).toString('hex');
    await expect(confirmAuthority(records, second, digest)).rejects.toMatchObject(
      configError(/the start of svc:authority#key-2 is not signed by svc:authority#key-1/),
    );
  });
});

describe('a running node', () => {
  async function running() {
    const clock = new ManualClock(startMs);
    const authority = await openAuthority(records, first, at(0));
    const told: string[] = [];
    const watch = watchAuthority({ records, authority, clock, warn: (what) => told.push(what) });
    await watch.start();
    return { clock, authority, told, [Symbol.dispose]: () => watch.stop() };
  }

  async function expectKept(authority: Authority, clock: ManualClock): Promise<void> {
    const { keys } = authority;
    const counted: string[] = [];
    const stop = onUnreadable(({ kind, id }) => counted.push(`${kind} ${id}`));
    await clock.advance(2_500);
    stop();
    expect(authority.keys).toBe(keys);
    expect(counted).toContain('authority keys');
  }

  test.for(tamperings)(
    'does not learn a list with %s, names the record, and seals nothing later',
    async ([, change]) => {
      using node = await running();
      const { clock, authority, told } = node;
      await rotateAuthority(records, first, second, at(0));
      await store(change(await stored()));
      await expectKept(authority, clock);
      expect(told).toEqual([expect.stringContaining('keys of the authority')]);
      await clock.advance(20_000);
      expect(() => authority.sign(Buffer.alloc(32), isoTime(clock.now()))).toThrow(
        expect.objectContaining({ code: 'unavailable' }),
      );
    },
  );

  test('does not learn a key put behind its own that its own has not signed', async () => {
    using node = await running();
    const { clock, authority } = node;
    const { keys } = await stored();
    const forgedLast = [...keys, keyOf(forged, 'svc:authority#key-2', forged, 0)];
    await store({ keys: forgedLast, listSig: signList(forgedLast, forged) });
    await expectKept(authority, clock);
  });

  test('does not learn the list of another service', async () => {
    using node = await running();
    const { clock, authority } = node;
    const other = new MemoryRecordStore();
    await openAuthority(other, forged, at(0));
    await store(JSON.parse((await other.get('authority', 'keys'))?.value ?? ''));
    await expectKept(authority, clock);
  });

  test('does not forget a key that it has learnt', async () => {
    using node = await running();
    const { clock, authority } = node;
    const before = await stored();
    await rotateAuthority(records, first, second, at(0));
    await clock.advance(2_500);
    expect(authority.keys).toHaveLength(2);
    await store(before);
    await expectKept(authority, clock);
  });
});

describe('the record of the log', () => {
  /** A key that the forger's own key endorses under the kid of the authority. */
  async function withForgedKey(change: (log: LogRecord, key: LogRecord['keys'][number]) => LogRecord) {
    const scene = await logScene();
    await openLogIdentity(scene.parts);
    const { log, version } = await readLog(scene.records);
    if (log === null) throw new Error('no log');
    const [own] = log.keys;
    if (own === undefined) throw new Error('no key');
    const key = { ...own, publicKey: publicKeyOf(newSigningKey()), validTo: at(0) };
    expect(await writeLog(scene.records, change(log, key), version)).toBe(true);
    return scene;
  }

  test.for([
    ['under its name', (log: LogRecord, key: LogRecord['keys'][number]) => ({ ...log, keys: [key, ...log.keys] })],
    [
      'under a name of before',
      (log: LogRecord, key: LogRecord['keys'][number]) => ({
        ...log,
        previous: [{ origin: 'before.example', keys: [key], endedAt: at(0) }],
      }),
    ],
    [
      'under another name',
      (log: LogRecord) => ({
        ...log,
        previous: [{ origin: 'before.example', keys: log.keys, endedAt: at(0) }],
      }),
    ],
    [
      'by a key that the list does not have',
      (log: LogRecord) => ({
        ...log,
        keys: log.keys.map((key) => ({ ...key, endorsement: { ...key.endorsement, kid: 'svc:authority#key-9' } })),
      }),
    ],
  ] as const)('with a key that the authority has not endorsed %s stops the start', async ([, change]) => {
    const { parts } = await withForgedKey(change);
    await expect(openLogIdentity(parts)).rejects.toMatchObject(configError(/log, id identity.*Restore/));
  });
});
