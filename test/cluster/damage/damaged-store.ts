import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FoldedGrant } from '../../../src/domain/event/grant.ts';
import { names } from '../../../src/domain/event/projection.ts';
import { parseRow } from '../../../src/domain/event/row.ts';
import { injectedFields } from '../../../src/domain/event/service-events.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import {
  applyToLedger,
  emptyLedger,
  ledgerFoldVersion,
  ledgerStateJson,
} from '../../../src/domain/ledger/ledger-state.ts';
import { isoTime } from '../../../src/domain/values/time.ts';
import { uuidV7 } from '../../../src/domain/values/uuid.ts';
import { sealedSnapshots } from '../../../src/service/records/sealed-snapshots.ts';
import type { Snapshot } from '../../../src/store/ledger-store.ts';
import { openStores, withClient } from '../../contract/cassandra-factory.ts';
import { chainEntries } from '../../support/chain-entries.ts';
import { append, closeLedger, createMaster, openingFacts, openLedger } from '../../support/commands.ts';
import { MemoryLedgerStore } from '../../support/memory-store/ledger-store.ts';
import { newMaster, newOrder, newParty, type Party } from '../../support/parties.ts';
import { done } from '../../support/parties-rest.ts';
import { Chain } from '../../support/world.ts';
import type { ClusterUnderTest } from '../rig/cluster-under-test.ts';
import { withRetries } from '../rig/with-retries.ts';
import { rowDamages } from './row-damages.ts';
import { note, type Scene, type StoredScene, storedScene } from './scene.ts';

interface DamagedScene extends Scene {
  readonly name: string;
  /** Types of findings of `cluster verify`; at least one of them is found. */
  readonly found: readonly string[];
  /** What a reader of the ledger gets. */
  readonly reads: 'issues' | 'whole';
}

export interface DamagedStore {
  readonly scenes: readonly DamagedScene[];
  /** Actors whose write grant is in a forged snapshot only, or was revoked after a stale snapshot. */
  readonly strangers: readonly { readonly scene: DamagedScene; readonly stranger: Party }[];
  /**
   * A ledger whose hashes and links are right. It has an event without permission, one after its close, and one of
   * 2099.
   */
  readonly forged: { readonly ledgerId: string; readonly buyer: Party };
}

/** Names of row damages: a wrong hint, and rows that are lost, empty, garbage or too many. */
const rowKinds = [
  'ledger.bucket 2147483647',
  'head_seq 4503599627370496',
  'pending [7,[],[],[],[]]',
  'command: a command key without seq',
  'row x at bucket 0, scope , seq 5000',
  'row empty at bucket 0, scope , seq 6',
  'record.value {}',
];

/** Makes ledgers through the first node, and gives each of them another damage in Cassandra. */
export async function damageStore(cluster: ClusterUnderTest): Promise<DamagedStore> {
  const [{ baseUrl = '' } = {}] = cluster.nodes;
  const [forgedScene, staleScene, ...others] = await Promise.all(
    Array.from({ length: rowKinds.length + 2 }, () => withRetries(() => shortScene(baseUrl))),
  );
  if (forgedScene === undefined || staleScene === undefined) throw new Error('no scene');
  const unkeyed = () => newParty(baseUrl, { keyed: false });
  const [stranger, dismissed] = await Promise.all([unkeyed(), unkeyed()]);
  return withClient(cluster.settings, async (client) => {
    const scenes: DamagedScene[] = [];
    for (const [n, name] of rowKinds.entries()) {
      const [damage, scene] = [rowDamages.find((one) => one.name === name), others[n]];
      if (damage === undefined || scene === undefined) throw new Error(`no ${name}`);
      await damage.change({
        ...idsOf(scene),
        other: idsOf(forgedScene),
        run: async (cql, ...params) => (await client.execute(cql, [...params], { prepare: true })).rows,
      });
      scenes.push({ ...scene, name, found: damage.found, reads: damage.reads });
    }
    // The snapshot is genuine and in its place, so it is no finding itself. The cell of the grant beside it is one.
    const stale = { ...staleScene, name: 'a stale snapshot', found: ['projection_extra'], reads: 'whole' } as const;
    const { snapshot, granted } = await staleSnapshot(cluster, storedScene(client, stale), dismissed);
    await putSnapshot(storedScene(client, stale), snapshot);
    const forging = {
      ...forgedScene,
      name: 'a forged snapshot',
      found: ['wrong_snapshot', 'projection_extra'],
      reads: 'whole',
    } as const;
    await putSnapshot(storedScene(client, forging), await forgedSnapshot(storedScene(client, forging), stranger));
    const asGranted = granted
      .replaceAll(stale.order.ledgerId, forging.order.ledgerId)
      .replaceAll(dismissed.actorId, stranger.actorId);
    await putCell(storedScene(client, forging), stranger.actorId, asGranted);
    return {
      scenes: [...scenes, forging, stale],
      strangers: [
        { scene: forging, stranger },
        { scene: stale, stranger: dismissed },
      ],
      forged: await forgeLog(cluster, baseUrl),
    };
  });
}

/** Events: 0 genesis, 1 opening, 2 and 3 masters, 4 … 7 notes of the first master. The parties have no keys. */
async function shortScene(base: string): Promise<Scene> {
  const order = await newOrder(base, { keyed: false });
  const scene = { order, master: await newMaster(order), other: await newMaster(order) };
  for (let n = 0; n < 4; n++) await note(base, scene, n);
  return scene;
}

function idsOf({ order, master }: Scene) {
  return { ledgerId: order.ledgerId, masterId: master.uuid, actorId: order.supplier.actorId };
}

async function stateOf({ run, scene }: StoredScene) {
  const cql = "SELECT row FROM ledger_event WHERE ledger_id = ? AND bucket = 0 AND scope = ''";
  const { rows } = await run(cql, [scene.order.ledgerId]);
  return rows.map(({ row }) => parseRow(String(row))).reduce(applyToLedger, emptyLedger);
}

/** A snapshot of the newest event in which a stranger has a write grant. It has no seal. */
async function forgedSnapshot(of: StoredScene, { actorId }: Party): Promise<Snapshot> {
  const state = await stateOf(of);
  const grant: FoldedGrant = {
    linkId: 'x',
    delegateActorId: actorId,
    role: 'OPS',
    access: 'write',
    grantedAt: '2020-01-01T00:00:00.000Z',
    expiresAt: null,
  };
  const forged = ledgerStateJson({ ...state, ledgerGrants: new Map([[actorId, grant]]) });
  return { foldVersion: ledgerFoldVersion, seq: state.seq, hash: state.hash, state: forged };
}

/** Grants, makes a sealed snapshot as a node does, and revokes. `granted`: the grant's projection. */
async function staleSnapshot(
  cluster: ClusterUnderTest,
  of: StoredScene,
  { actorId }: Party,
): Promise<{ readonly snapshot: Snapshot; readonly granted: string }> {
  const { order } = of.scene;
  const link = { ledger_id: order.ledgerId, delegate_actor_id: actorId };
  const call = (method: string, body: object) =>
    withRetries(() => done(order.base, method, '/v1/delegation/ledger', order.buyer, body));
  await call('POST', { ...link, role: 'OPS' });
  const state = await stateOf(of);
  const granted = await grantCell(of, actorId);
  await call('PATCH', link);
  await putCell(of, actorId, granted);
  const key = Buffer.from(readFileSync(cluster.commonEnv.SECRETS_KEY_FILE ?? '', 'utf8'), 'base64');
  const memory = new MemoryLedgerStore(Date.now);
  const snapshot = { foldVersion: ledgerFoldVersion, seq: state.seq, hash: state.hash, state: ledgerStateJson(state) };
  await sealedSnapshots(memory, key, () => {}).saveSnapshot(order.ledgerId, snapshot);
  const sealed = await memory.snapshot(order.ledgerId);
  if (sealed === null) throw new Error('no snapshot');
  return { snapshot: sealed, granted };
}

function putSnapshot({ run, scene }: StoredScene, { foldVersion, seq, hash, state }: Snapshot) {
  const columns = '(owner, fold_version, seq, hash, state, saved_at)';
  return run(`INSERT INTO snapshot ${columns} VALUES (?, ?, ?, ?, ?, ?)`, [
    ...[scene.order.ledgerId, foldVersion, seq, hash, state, Date.now()],
  ]);
}

/** The projection of a grant, which permits reads. */
async function grantCell({ run, scene }: StoredScene, actorId: string): Promise<string> {
  const { rows } = await run('SELECT value FROM cell WHERE key = ?', [
    names.grant('ledger', scene.order.ledgerId, actorId),
  ]);
  return String(rows[0]?.value);
}

function putCell({ run, scene }: StoredScene, actorId: string, value: string) {
  const key = names.grant('ledger', scene.order.ledgerId, actorId);
  return run('INSERT INTO cell (key, version, value) VALUES (?, ?, ?)', [key, 99, value]);
}

/** Writes a log that an attacker sealed, who can write to the store and has another authority key. */
async function forgeLog(cluster: ClusterUnderTest, base: string): Promise<DamagedStore['forged']> {
  const unkeyed = () => newParty(base, { keyed: false });
  const [buyer, supplier, stranger] = await Promise.all([unkeyed(), unkeyed(), unkeyed()]);
  const now = isoTime(Date.now());
  const [ledgerId, masterId] = [uuidV7(Date.now(), randomBytes(10)), uuidV7(Date.now(), randomBytes(10))];
  const by = { ledgerId, actorId: supplier.actorId };
  const chain = new Chain();
  const parties = { buyerActorId: buyer.actorId, supplierActorId: supplier.actorId };
  chain.run(openLedger({ ...by, facts: openingFacts('ORDER', parties) }), now);
  chain.run(createMaster({ ...by, masterId }), now);
  const [facts, master] = [chain.ledger.facts, chain.masters.get(masterId)?.facts];
  if (facts === null || master === undefined) throw new Error('no master');
  const noted = (actorId = supplier.actorId) =>
    append({ ...by, actorId, masterId, payload: canonicalJson(injectedFields(facts, master)) });
  chain.run(noted(), now);
  const grant = { access: 'write', role: 'OPS', expiresAt: null, delegateActorId: stranger.actorId };
  chain.ledger = { ...chain.ledger, ledgerGrants: new Map([[stranger.actorId, grant as FoldedGrant]]) };
  chain.run(noted(stranger.actorId), now);
  chain.run(closeLedger(by), now);
  chain.ledger = { ...chain.ledger, closed: false };
  chain.run(noted(), now);
  chain.run(noted(), '2099-01-01T00:00:00.000Z');
  await using stores = await openStores(cluster.settings, Date.now);
  await stores.ledgers.append(await stores.ledgers.claim(ledgerId), chainEntries(chain.events));
  return { ledgerId, buyer };
}
