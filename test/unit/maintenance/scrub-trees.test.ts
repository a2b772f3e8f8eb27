import { beforeAll, describe, expect, test } from 'vitest';
import type { Finding } from '../../../src/maintenance/scrub/finding.ts';
import { scrubTrees } from '../../../src/maintenance/scrub/scrub-trees.ts';
import { formatHashes } from '../../../src/store/tile-value.ts';
import { ledgerId, masterId } from '../../support/commands.ts';
import { MemoryTileStore, memoryTreeInspection, nameOfPlace } from '../../support/memory-store/trees.ts';
import {
  appendAll,
  emptyProofData,
  ledgerLog,
  longChain,
  masterLog,
  type ProofData,
  ProvingNode,
} from '../../support/proofs-rig.ts';
import { startMs } from '../../support/world.ts';

const chain = longChain(700);
const serviceName = 'ledger.example/v1';
const ledgerOrigin = `${serviceName}/ledgers/${ledgerId}`;
const masterOrigin = `${serviceName}/masters/${masterId}`;

/** A store whose logs were signed. */
const signed = emptyProofData();
beforeAll(async () => {
  const node = new ProvingNode(signed);
  await appendAll(node.store, chain);
  await node.newest(ledgerLog);
  await node.newest(masterLog);
});

/** The same data, whose trees and signed heads may be changed. */
function signedStore(): ProofData {
  const { hashes, heads } = signed.trees;
  return { ledgers: signed.ledgers, trees: { hashes: new Map(hashes), heads: new Map(heads) } };
}

async function scrub(data: ProofData, { repair = false, name = serviceName as string | null } = {}) {
  const findings: Finding[] = [];
  const { store } = new ProvingNode(data);
  const total = await scrubTrees({
    ...{ ledgers: store, trees: memoryTreeInspection(data.trees), now: () => startMs, repair },
    serviceName: name,
    found: (finding) => void findings.push(finding),
  });
  return { ...total, findings };
}

const put = (data: ProofData, owner: string, level: number, position: number, hash = Buffer.alloc(32, 7)) => {
  const place = { owner, level, position };
  data.trees.hashes.set(nameOfPlace(place), formatHashes(place, hash));
};

test('nothing is found in what nodes have written', async () => {
  const data = signedStore();
  const { findings, hashValues, signedHeads } = await scrub(data);
  expect(findings).toEqual([]);
  // Two tiles of the ledger, one of the master with its tail, and the hashes above them.
  expect([hashValues > 3 * 256, signedHeads]).toEqual([true, 2]);
});

test.each([
  ['of a leaf', ledgerOrigin, 0, 300, 'the hash is not that of the events'],
  ['above the leaves', ledgerOrigin, 1, 1, 'the hash is not that of the events'],
  ['of a leaf of a master', masterOrigin, 0, 17, 'the hash is not that of the events'],
  ['above the leaves of a master', masterOrigin, 1, 0, 'the hash is not that of the events'],
  [
    'under another name of the service',
    `other.example/ledgers/${ledgerId}`,
    0,
    3,
    'the hash is not that of the events',
  ],
  ['behind the end of the log', ledgerOrigin, 0, 700, 'the log has no such events'],
  ['of events that are not there yet', ledgerOrigin, 1, 2, 'the log has no such events'],
  ['so high that no log reaches it', ledgerOrigin, 63, 0, 'the log has no such events'],
  ['of a ledger that is not there', `${serviceName}/ledgers/${masterId}`, 0, 0, 'the log has no such events'],
  ['of a master that is not there', `${serviceName}/masters/${ledgerId}`, 0, 0, 'there is no such log'],
  ['of a name that no log has', 'something', 0, 0, 'there is no such log'],
])('a hash %s that is wrong is found, and the repair removes it alone', async (_what, owner, level, position, why) => {
  const data = signedStore();
  put(data, owner, level, position);
  const { size } = data.trees.hashes;
  expect((await scrub(data)).findings).toEqual([
    expect.objectContaining({ type: 'wrong_tile', detail: `${owner}, level ${level}, position ${position}: ${why}` }),
  ]);
  expect(await scrub(data, { repair: true })).toMatchObject({ findings: [], removed: 1 });
  expect(data.trees.hashes.size).toBe(size - 1);
  expect(await scrub(data)).toMatchObject({ findings: [], removed: 0 });
});

test('a value of another position, of another owner, and of random bytes is found', async () => {
  const data = signedStore();
  const { hashes } = data.trees;
  const valueAt = (owner: string, position: number) => hashes.get(nameOfPlace({ owner, level: 0, position })) as Buffer;
  hashes.set(nameOfPlace({ owner: ledgerOrigin, level: 0, position: 5 }), valueAt(ledgerOrigin, 6));
  hashes.set(nameOfPlace({ owner: ledgerOrigin, level: 0, position: 7 }), valueAt(masterOrigin, 7));
  hashes.set(nameOfPlace({ owner: masterOrigin, level: 0, position: 9 }), Buffer.alloc(48, 9));
  const { findings } = await scrub(data);
  expect(findings.map(({ type, detail }) => [type, detail])).toEqual(
    [
      [ledgerOrigin, 5],
      [ledgerOrigin, 7],
      [masterOrigin, 9],
    ].map(([owner, at]) => ['wrong_tile', `${owner}, level 0, position ${at}: the value does not fit its place`]),
  );
  expect(await scrub(data, { repair: true })).toMatchObject({ findings: [], removed: 3 });
  // The next reader makes them anew.
  const node = new ProvingNode(data);
  await node.checkpoints.inclusion(ledgerLog, 5, 700, node.walk);
  expect(await new MemoryTileStore(data.trees).tile(ledgerOrigin, 0, 0)).toHaveLength(256);
  expect((await scrub(data)).findings).toEqual([]);
});

test('an event that was changed is found once, and no hash over it is called wrong or removed', async () => {
  const data = signedStore();
  const entries = data.ledgers.ledgers.get(ledgerId)?.entries;
  const row = entries?.get(300)?.row ?? '';
  entries?.set(300, { seq: 300, row: row.replace('"n":300', '"n":301') });
  const { findings, removed } = await scrub(data, { repair: true });
  expect(removed).toBe(0);
  entries?.set(300, { seq: 300, row });
  expect(findings.map((finding) => [finding.ledgerId, finding.seq, finding.type])).toEqual([
    [ledgerId, 300, 'broken_row'],
  ]);
});

describe('a signed head', () => {
  const logsBehind = ({ findings }: { readonly findings: readonly Finding[] }) =>
    findings.map(({ type, detail }) => `${type} ${detail}`).sort();

  test('of more events than there are is behind', async () => {
    const data = signedStore();
    const older = { trees: { ...data.trees, hashes: new Map() }, ledgers: emptyProofData().ledgers };
    await appendAll(new ProvingNode(older).store, chain.slice(0, 600));
    expect(logsBehind(await scrub(older))).toEqual([
      `log_behind ${ledgerOrigin}: 700 events of it were signed, and the store has fewer`,
      expect.stringMatching(`log_behind ${masterOrigin}: \\d+ events of it were signed, and the store has fewer`),
    ]);
    const none = { ...older, ledgers: emptyProofData().ledgers };
    expect(logsBehind(await scrub(none))).toHaveLength(2);
  });

  test('of other events than those of the store is behind', async () => {
    const data = signedStore();
    const other = { trees: { ...data.trees, hashes: new Map() }, ledgers: emptyProofData().ledgers };
    await appendAll(new ProvingNode(other).store, longChain(800));
    expect(logsBehind(await scrub(other))).toEqual([
      `log_behind ${ledgerOrigin}: its first 700 events are not those that were signed`,
      expect.stringContaining(`log_behind ${masterOrigin}: its first`),
    ]);
    // Nothing more is signed under the old name, so that it binds nobody.
    expect(logsBehind(await scrub(other, { name: `${serviceName}-2` }))).toEqual([]);
    expect(logsBehind(await scrub(other, { name: null }))).toEqual([]);
  });

  test('that cannot be read is found', async () => {
    const data = signedStore();
    const head = data.trees.heads.get(ledgerOrigin);
    data.trees.heads.set(ledgerOrigin, { size: head?.size ?? 0, value: Buffer.alloc(56, 1) });
    expect(logsBehind(await scrub(data))).toEqual([`damaged_row the signed head of ${ledgerOrigin} cannot be read`]);
  });
});
