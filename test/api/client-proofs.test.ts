import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  type ClientOptions,
  createClient,
  type LedgerTrustClient,
  verifyInclusion,
  Watermarks,
} from '../../src/client/index.ts';
import { onLoopback } from '../support/loopback.ts';
import { nodeForTests } from '../support/node-for-tests.ts';
import { append, newMaster, newOrder, newParty, type Party } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { newKeyFile, productionSettings } from '../support/production-settings.ts';
import { runHere } from '../support/program-here.ts';
import { type RunningTestNode, runNode, suiteDir } from '../support/running-node.ts';

const root = suiteDir();
const node = await nodeForTests();

function connect(node: RunningTestNode, { apiKey }: Party, options: Partial<ClientOptions> = {}): LedgerTrustClient {
  return createClient({ baseUrl: node.base, grpcUrl: `http://${node.grpcAddress}`, apiKey, ...options });
}

test.each(['rest', 'grpc'] as const)(
  'over %s, checkpoints and events are verified, also those of a delegate',
  async (transport) => {
    const order = await newOrder(node.base, { keyed: false });
    const { buyer, ledgerId } = order;
    const [master, other] = [await newMaster(order), await newMaster(order)];
    for (const one of [master, other, master]) await append(one, buyer, 'COUNTED', { n: 1 });
    const delegate = await newParty(node.base, { keyed: false });
    await done(node.base, 'POST', '/v1/delegation/master', buyer, {
      master_id: master.uuid,
      delegate_actor_id: delegate.actorId,
      role: 'AUDITOR',
    });

    await using client = connect(node, buyer, { transport });
    const events = await Array.fromAsync(client.ledgerEvents(ledgerId));
    const { origin, size } = await client.checkpoint(ledgerId);
    expect({ origin, size }).toEqual({ origin: expect.stringMatching(`/ledgers/${ledgerId}$`), size: events.length });
    const { log } = await client.getAuthority();
    const keys = log?.keys.map(({ publicKey }) => publicKey) ?? [];
    for (const event of events) {
      const { proof, index, checkpoint } = await client.proveEvent(event);
      expect({ index, size: checkpoint.size }).toEqual({ index: event.seq, size: event.seq + 1 });
      const record = Buffer.from(event.hash, 'hex');
      expect(verifyInclusion(proof, { record, index, origin, keys }).root).toEqual(checkpoint.root);
    }
    const before = await client.masterCheckpoint(master.uuid);
    await append(master, order.buyer, 'COUNTED', { n: 1 });
    expect((await client.masterCheckpoint(master.uuid)).size).toBe(before.size + 1);
    expect((await client.checkpoint(ledgerId)).size).toBe(size + 1);
    expect((await client.checkpoint(ledgerId, { size: 2 })).size).toBe(2);

    await using ofDelegate = connect(node, delegate, { transport });
    for (const event of await Array.fromAsync(ofDelegate.masterEvents(master.uuid))) {
      expect((await ofDelegate.proveEvent(event)).index).toBe(event.seq);
    }
    expect((await ofDelegate.masterCheckpoint(master.uuid)).size).toBe(before.size + 1);
    await expect(ofDelegate.checkpoint(ledgerId)).rejects.toMatchObject({ code: 'permission_denied' });
  },
);

test('old checkpoints stay good when the log key is rotated, and the endorsed new key is accepted', async () => {
  const dir = join(root, 'production');
  const dataDir = join(root, 'rotated');
  mkdirSync(dir);
  const env = productionSettings(dir);
  const watermarks = new Watermarks(join(root, 'rotated.json'));
  const start = (LOG_KEY_FILE: string) => runNode({ dataDir, env: { ...env, LOG_KEY_FILE } });
  let rotating = await start(env.LOG_KEY_FILE);
  const order = await newOrder(rotating.base);
  const look = async () => {
    await using client = connect(rotating, order.buyer, { watermarks });
    return await client.checkpoint(order.ledgerId);
  };
  const first = await look();
  await rotating.stop();
  const next = newKeyFile(dir, 'next.pem');
  const rotated = await runHere(['log', 'rotate', next], { env: { ...env, DATA_DIR: dataDir } });
  expect(rotated).toMatchObject({ code: 0 });
  rotating = await start(next);
  await newMaster({ ...order, base: rotating.base });
  const second = await look();
  expect(second.size).toBe(first.size + 1);
  const { logKeys } = (await watermarks.read()) ?? expect.fail();
  expect(logKeys).toHaveLength(2);
  await rotating.stop();
});

test('a copied store that goes on from an older state is found out by the client that kept a checkpoint', async () => {
  const env = { LOG_ORIGIN: 'ledger.example/v1' };
  const dataDir = join(root, 'copied');
  const watermarks = new Watermarks(join(root, 'copied.json'));
  const original = await runNode({ dataDir, env });
  const order = await newOrder(original.base, { keyed: false });
  const master = await newMaster(order);
  await original.stop();
  cpSync(dataDir, `${dataDir}-older`, { recursive: true });
  const continued = async (dir: string, appends: number) => {
    await using going = await runNode({ dataDir: dir, env });
    for (let at = 0; at < appends; at += 1)
      await append({ ...master, base: going.base }, order.buyer, 'COUNTED', { n: at });
    await using client = connect(going, order.buyer, { watermarks });
    return await client.checkpoint(order.ledgerId);
  };
  const { note, size } = await continued(dataDir, 3);
  await expect(continued(`${dataDir}-older`, 1)).rejects.toMatchObject({ reason: 'checkpoint_behind' });
  await expect(continued(`${dataDir}-older`, 3)).rejects.toMatchObject({
    reason: 'checkpoints_contradict',
    notes: [note, expect.stringContaining(`\n${size + 1}\n`)],
  });
});

test('an export with its checkpoint verifies, and a shortened one does not', async () => {
  await using node = await runNode({ env: { LOG_ORIGIN: 'ledger.example/v1' } });
  const order = await newOrder(node.base, { keyed: false });
  const master = await newMaster(order);
  await append(master, order.buyer, 'COUNTED', { n: 1 });
  const [file, note] = [join(root, 'export.jsonl'), join(root, 'export.checkpoint')];
  const env = { LEDGER_TRUST_API_KEY: order.buyer.apiKey };
  const exporting = ['export', order.ledgerId, '--url', node.base, '--out', file, '--checkpoint', note];
  expect(await runHere(exporting, { env })).toMatchObject({ code: 0 });
  expect(readFileSync(note, 'utf8')).toMatch(/^ledger\.example\/v1\/ledgers\/\S+\n4\n\S+\n\n— \S+ \S+\n$/);
  const anchor = await done(node.base, 'GET', '/.well-known/svc-authority');
  const key = String(anchor.rows('log.keys')[0]?.public_key);
  const verifying = (path: string) =>
    runHere(['verify', path, '--checkpoint', note, '--log-key', key, '--origin', 'ledger.example/v1']);
  expect((await verifying(file)).out).toContain('checkpoint  of 4 events in ledger.example/v1/ledgers/');
  // Without the last event, and with an end that says so.
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const shortened = lines.toSpliced(4, 1).join('\n').replace('"count":4', '"count":3');
  const path = join(root, 'shortened.jsonl');
  writeFileSync(path, shortened);
  expect(await verifying(path)).toMatchObject({ code: 1, out: expect.stringContaining('shorter_than_checkpoint') });

  const ofMaster = ['export', '--master', master.uuid, '--url', node.base, '--out', file, '--checkpoint', note];
  expect(await runHere(ofMaster, { env })).toMatchObject({ code: 0 });
  expect((await verifying(file)).out).toContain(`checkpoint  of 2 events in ledger.example/v1/masters/${master.uuid}`);
});

/** The node as a service that gives no checkpoint, as one of before. */
async function withoutCheckpoints(base: string) {
  const server = createServer(async (request, response) => {
    if (request.url?.includes('/checkpoint')) return void response.writeHead(404).end('{}');
    const { authorization = '' } = request.headers;
    const answer = await fetch(`${base}${request.url}`, { headers: { authorization } });
    const type = answer.headers.get('content-type') ?? '';
    response.writeHead(answer.status, { 'content-type': type }).end(await answer.text());
  });
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${await onLoopback(server)}`;
}

test('an export holds its checkpoint, under which events that actors signed cannot be left out', async () => {
  const order = await newOrder(node.base);
  const master = await newMaster(order);
  for (const by of [order.supplier, order.buyer]) await append(master, by, 'COUNTED', { by: by.actorId });
  const file = join(root, 'signed.jsonl');
  const exporting = ['export', order.ledgerId, '--out', file, '--url'];
  const env = { LEDGER_TRUST_API_KEY: order.buyer.apiKey };
  const verifying = (path: string) => runHere(['verify', path, '--resolver', node.base]);
  expect(await runHere([...exporting, node.base], { env })).toMatchObject({ code: 0 });
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ format: 'ledger-trust-export/2' });
  expect(JSON.parse(lines.at(-2) ?? '').checkpoint).toMatch(new RegExp(`^\\S+/ledgers/${order.ledgerId}\\n5\\n`));
  const { code, out } = await verifying(file);
  expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^VALID[^\n]* chain whole\n/) });
  expect(out).toContain('checkpoint  of 5 events in ');
  // Nothing else shows that the last event is gone.
  const cut = lines.toSpliced(5, 1).join('\n').replace('"count":5', '"count":4');
  writeFileSync(file, cut);
  expect(await verifying(file)).toMatchObject({ code: 1, out: expect.stringContaining('shorter_than_checkpoint') });
  writeFileSync(file, cut.replace(/^{"checkpoint".*\n/m, ''));
  expect(await verifying(file)).toMatchObject({ code: 2, out: expect.stringContaining('? order_unsigned') });

  const written = await runHere([...exporting, await withoutCheckpoints(node.base)], { env });
  expect(written).toMatchObject({ code: 0, out: '' });
  expect(written.err).toMatch(/^Exported 5 events[^\n]+\nThe export holds no checkpoint[^\n]+\n$/);
  expect(readFileSync(file, 'utf8')).not.toContain('{"checkpoint"');
  expect(await verifying(file)).toMatchObject({ code: 2, out: expect.stringContaining('? order_unsigned') });
});

test('the export of a delegate that sees a whole ledger through its master holds its checkpoint', async () => {
  const order = await newOrder(node.base);
  const master = await newMaster(order);
  await append(master, order.buyer, 'COUNTED', { n: 1 });
  const delegate = await newParty(node.base);
  await done(node.base, 'POST', `/v1/traceledger/master/${master.uuid}/access`, {
    headers: order.buyer.bearer,
    body: { actor_id: delegate.actorId, access: 'read' },
  });
  await append(master, order.buyer, 'COUNTED', { n: 2 });
  // What this delegate does not see comes behind all that it sees.
  await newMaster(order);
  const [file, note] = [join(root, 'delegate.jsonl'), join(root, 'delegate.checkpoint')];
  const args = ['export', order.ledgerId, '--url', node.base, '--out', file, '--checkpoint', note];
  expect(await runHere(args, { env: { LEDGER_TRUST_API_KEY: delegate.apiKey } })).toMatchObject({ code: 0 });
  const { checkpoint } = JSON.parse(readFileSync(file, 'utf8').trimEnd().split('\n').at(-2) ?? '');
  expect(checkpoint).toMatch(new RegExp(`^\\S+/ledgers/${order.ledgerId}\\n6\\n`));
  expect(readFileSync(note, 'utf8')).toBe(checkpoint);
  const verified = await runHere(['verify', file, '--resolver', node.base]);
  expect(verified).toMatchObject({ code: 0, out: expect.stringContaining('checkpoint  of 6 events in ') });
});

test('an export that is a segment is written, and has no checkpoint', async () => {
  const order = await newOrder(node.base, { keyed: false });
  const [master, other] = [await newMaster(order), await newMaster(order)];
  await append(other, order.buyer, 'COUNTED', { n: 1 });
  await append(master, order.buyer, 'COUNTED', { n: 1 });
  const delegate = await newParty(node.base, { keyed: false });
  await done(node.base, 'POST', '/v1/delegation/master', order.buyer, {
    master_id: master.uuid,
    delegate_actor_id: delegate.actorId,
    role: 'AUDITOR',
  });
  const [file, note] = [join(root, 'segment.jsonl'), join(root, 'segment.checkpoint')];
  const args = ['export', order.ledgerId, '--url', node.base, '--out', file, '--checkpoint', note];
  const { code, err } = await runHere(args, { env: { LEDGER_TRUST_API_KEY: delegate.apiKey } });
  expect({ code, err }).toMatchObject({ code: 1, err: expect.stringContaining('the export is a segment') });
  expect([existsSync(file), existsSync(note)]).toEqual([true, false]);
  expect(readFileSync(file, 'utf8')).not.toContain('{"checkpoint"');
});
