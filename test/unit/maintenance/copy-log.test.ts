import { describe, expect, test } from 'vitest';
import { CopyRefused } from '../../../src/maintenance/copy/copy-ledger.ts';
import { completeLog, copyLog } from '../../../src/maintenance/copy/copy-log.ts';
import { openAuthority } from '../../../src/service/authority/authority.ts';
import { openLogIdentity } from '../../../src/service/log-identity/log-identity.ts';
import { readLog } from '../../../src/service/log-identity/log-record.ts';
import { ledgerId, masterId } from '../../support/commands.ts';
import { logScene, newStamp } from '../../support/log-stores.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { emptyTreeData, MemorySignedHeads, memoryTreeInspection } from '../../support/memory-store/trees.ts';
import { appendAll, emptyProofData, ledgerLog, longChain, masterLog, ProvingNode } from '../../support/proofs-rig.ts';

const origin = 'ledger.example/v1';
const ledgerOrigin = `${origin}/ledgers/${ledgerId}`;
const masterOrigin = `${origin}/masters/${masterId}`;
const chain = longChain(40);

/** A source whose logs were signed, and a keyspace that no node has served yet. */
async function scene() {
  const scene = await logScene();
  await openLogIdentity({ ...scene.parts, origin });
  const data = emptyProofData();
  const node = new ProvingNode(data);
  await appendAll(node.store, chain);
  await node.newest(ledgerLog);
  await node.newest(masterLog);
  const source = { ...scene, data, ledgers: node.store, trees: memoryTreeInspection(data.trees) };
  const trees = emptyTreeData();
  const target = {
    records: new MemoryRecordStore(),
    stamp: newStamp('keyspace 1'),
    signedHeads: new MemorySignedHeads(trees),
    trees,
  };
  await openAuthority(target.records, scene.authorityKey, scene.nowIso);
  return { source, target };
}

const settings = (logOrigin: string | null) => ({ logOrigin, now: () => 0 });

describe('the log of copied data', () => {
  test.each([origin, null])('goes on in the target if its nodes have the same origin: %s', async (logOrigin) => {
    const { source, target } = await scene();
    const identity = () => openLogIdentity({ ...source.parts, ...target, origin });
    // Twice, as after an interruption.
    for (let run = 1; run <= 2; run += 1) {
      expect(await copyLog(source, target, settings(logOrigin))).toBe(origin);
      expect((await identity()).behind.store).toBe(run === 1);
      expect(await completeLog(source, target, origin)).toBe(2);
    }
    expect((await identity()).behind.isEmpty).toBe(true);
    expect((await identity()).keys).toEqual((await readLog(source.records)).log?.keys);
    for (const name of [ledgerOrigin, masterOrigin])
      expect(await target.signedHeads.get(name)).toEqual(await new MemorySignedHeads(source.data.trees).get(name));
  });

  test('never sets back what the target has signed since', async () => {
    const { source, target } = await scene();
    await copyLog(source, target, settings(origin));
    await target.signedHeads.raise(ledgerOrigin, 41, Buffer.alloc(32, 1));
    await completeLog(source, target, origin);
    expect(await target.signedHeads.get(ledgerOrigin)).toMatchObject({ size: 41 });
  });

  test('leaves the mark of a target that was restored from a copy itself', async () => {
    const { source, target } = await scene();
    await copyLog(source, target, settings(origin));
    await completeLog(source, target, origin);
    target.stamp.mark('keyspace 2');
    await copyLog(source, target, settings(origin));
    await completeLog(source, target, origin);
    expect((await openLogIdentity({ ...source.parts, ...target, origin })).behind.store).toBe(true);
  });

  test('takes along no head of another name', async () => {
    const { source, target } = await scene();
    await new MemorySignedHeads(source.data.trees).raise(`old.example/ledgers/${ledgerId}`, 90, Buffer.alloc(32, 1));
    await copyLog(source, target, settings(origin));
    expect(await completeLog(source, target, origin)).toBe(2);
    expect([...target.trees.heads.keys()].sort()).toEqual([ledgerOrigin, masterOrigin]);
  });

  test('stays behind if the nodes of the target have another origin', async () => {
    const { source, target } = await scene();
    expect(await copyLog(source, target, settings('cluster.example/v1'))).toBeNull();
    expect((await readLog(target.records)).log).toBeNull();
    await openLogIdentity({ ...source.parts, ...target, origin: 'cluster.example/v1' });
    expect(await copyLog(source, target, settings(null))).toBeNull();
  });

  test('is not copied from a restored copy', async () => {
    const { source, target } = await scene();
    source.stamp.mark();
    await expect(copyLog(source, target, settings(origin))).rejects.toThrow(CopyRefused);
    expect((await readLog(target.records)).log).toBeNull();
  });

  test.each([
    ['more events than there are', 41],
    ['other events', 40],
  ])('is not copied if %s were signed', async (_what, size) => {
    const { source, target } = await scene();
    const { heads } = source.data.trees;
    heads.delete(ledgerOrigin);
    await new MemorySignedHeads(source.data.trees).raise(ledgerOrigin, size, Buffer.alloc(32, 1));
    const copying = copyLog(source, target, settings(null));
    await expect(copying).rejects.toThrow(CopyRefused);
    await expect(copying).rejects.toThrow(/A log is behind .*new-origin/);
    expect((await readLog(target.records)).log).toBeNull();
  });

  test('is not copied if a signed head cannot be read', async () => {
    const { source, target } = await scene();
    source.data.trees.heads.set(ledgerOrigin, { size: 40, value: Buffer.alloc(8) });
    await expect(copyLog(source, target, settings(origin))).rejects.toThrow(/signed head of .* is damaged/);
  });

  test('is copied with a damaged event, which the copy of its ledger names', async () => {
    const { source, target } = await scene();
    source.data.ledgers.ledgers.get(ledgerId)?.entries.delete(20);
    expect(await copyLog(source, target, settings(origin))).toBe(origin);
  });
});
