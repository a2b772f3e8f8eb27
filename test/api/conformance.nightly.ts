import { createClient, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, expect, test } from 'vitest';
import { decodeBase64 } from '../../src/domain/keys/base64.ts';
import { verifyCheckpoint } from '../../src/domain/log/checkpoint.ts';
import { verifyProofFile } from '../../src/domain/log/proof-file.ts';
import { isConsistent } from '../../src/domain/log/tree-proof.ts';
import { ProofService } from '../../src/gen/svc/v1/proofs_pb.ts';
import { expectConformance } from '../support/conformance-kit.ts';
import { knownKey } from '../support/log-keys.ts';
import { startNodeProcess } from '../support/node-process.ts';
import { append, eventsOf, newMaster, newOrder } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { suiteDir } from '../support/running-node.ts';

const node = await startNodeProcess({ DATA_DIR: suiteDir() });
afterAll(() => node.kill());
const { base } = node;

test('the conformance kit passes against a new node, over REST', { timeout: 1_800_000 }, (context) =>
  expectConformance(context, { url: base }),
);

test.each<[string, Transport]>([
  ['gRPC', createGrpcTransport({ baseUrl: `http://${node.grpcAddress}` })],
  ['Connect', createConnectTransport({ baseUrl: base, httpVersion: '1.1' })],
])('each of the six methods gives an answer that verifies over %s', async (_, transport) => {
  const order = await newOrder(base);
  const master = await newMaster(order);
  for (let n = 0; n < 5; n += 1)
    expect(await append(master, order.supplier, 'NOTED', { n })).toMatchObject({ status: 200 });
  const events = await eventsOf(base, order.buyer, order.ledgerId);
  const anchor = await done(base, 'GET', '/.well-known/svc-authority');
  const keys = anchor.rows('log.keys').map(({ public_key }) => knownKey(String(public_key)));
  const logOf = (place: string) => {
    const origin = `${anchor.text('log.origin')}/${place}`;
    return { origin, keys, verify: (note: string) => verifyCheckpoint(note, origin, keys) };
  };
  const ledger = logOf(`ledgers/${order.ledgerId}`);
  const ofMaster = logOf(`masters/${master.uuid}`);
  const proofs = createClient(ProofService, transport);
  const headers = { headers: order.buyer.bearer };
  const inLedger = { ledgerId: order.ledgerId };
  const inMaster = { uuid: master.uuid };

  const [newest, newestOfMaster] = [
    await proofs.getLedgerCheckpoint(inLedger, headers),
    await proofs.getMasterCheckpoint(inMaster, headers),
  ];
  expect(ledger.verify(newest.checkpoint).size).toBe(events.length);
  const eventsOfMaster = events.filter(({ master_id }) => master_id === master.uuid);
  expect(ofMaster.verify(newestOfMaster.checkpoint).size).toBe(eventsOfMaster.length);

  const [event, size] = [events[3], BigInt(events.length)];
  const inclusion = await proofs.getLedgerInclusion({ ...inLedger, seq: 3n, size }, headers);
  const record = Buffer.from(String(event?.hash), 'hex');
  expect(verifyProofFile(inclusion.proof, { record, index: 3, ...ledger }).size).toBe(events.length);
  const third = eventsOfMaster[2];
  const included = await proofs.getMasterInclusion({ ...inMaster, eventId: String(third?.id) }, headers);
  const recordOfMaster = Buffer.from(String(third?.content_hash), 'hex');
  const expectedSize = eventsOfMaster.length;
  expect(verifyProofFile(included.proof, { record: recordOfMaster, index: 2, ...ofMaster }).size).toBe(expectedSize);

  for (const [log, answer] of [
    [ledger, await proofs.getLedgerConsistency({ ...inLedger, from: 3n }, headers)],
    [ofMaster, await proofs.getMasterConsistency({ ...inMaster, from: 3n }, headers)],
  ] as const) {
    const [older, newer] = [log.verify(answer.checkpointFrom), log.verify(answer.checkpointTo)];
    const hashes = answer.hashes.map((hash) => decodeBase64(hash, 32) ?? Buffer.alloc(0));
    const claim = { oldSize: older.size, oldRoot: older.root, newSize: newer.size, newRoot: newer.root, hashes };
    expect([older.size, isConsistent(claim)]).toEqual([3, true]);
  }
});
