import { join } from 'node:path';
import { createClient, type Client as RpcClient, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { decodeBase64 } from '../../src/domain/keys/base64.ts';
import { verifyCheckpoint } from '../../src/domain/log/checkpoint.ts';
import { verifyProofFile } from '../../src/domain/log/proof-file.ts';
import { isConsistent } from '../../src/domain/log/tree-proof.ts';
import { ProofService } from '../../src/gen/svc/v1/proofs_pb.ts';
import { restJson } from '../../src/service/encoding/message-json.ts';
import { grpcClient } from '../support/grpc-client.ts';
import { knownKey } from '../support/log-keys.ts';
import { isNightly } from '../support/nightly.ts';
import { eventsOf, type Master, newMaster, newOrder, newParty, type Party } from '../support/parties.ts';
import { done, expectRefused, type Fields, type RestAnswer, rest } from '../support/parties-rest.ts';
import { sendAll, streamed } from '../support/parties-stream.ts';
import { runHere } from '../support/program-here.ts';
import { runNode, suiteDir } from '../support/running-node.ts';

/** The ledger of these tests has this many events. Nothing that its delegate gets may tell the number. */
const ledgerSize = isNightly ? 7_919 : 379;

const root = suiteDir();
const env = { LOG_ORIGIN: 'ledger.example/v1' };
const node = await runNode({ dataDir: join(root, 'whole'), env });
afterAll(() => node[Symbol.asyncDispose]());
const { base } = node;
const order = await newOrder(base, { keyed: false });
const { buyer, ledgerId } = order;
const [delegate, stranger] = [await newParty(base, { keyed: false }), await newParty(base, { keyed: false })];
const master = await newMaster(order);
const sibling = await newMaster(order);
await done(base, 'POST', '/v1/delegation/master', buyer, {
  master_id: master.uuid,
  delegate_actor_id: delegate.actorId,
  role: 'AUDITOR',
});
await fill();
const events = (await eventsOf(base, buyer, ledgerId)).map(placeOf);
const ofMaster = events.filter(({ master_id }) => master_id === master.uuid);
const ofSibling = events.filter(({ master_id }) => master_id === sibling.uuid);

function placeOf({ id, seq, hash, master_id }: Fields) {
  return { id: String(id), seq: Number(seq), hash: String(hash), master_id };
}

/** Every tenth event is of the delegate's master. */
async function fill(): Promise<void> {
  const client = grpcClient(node.grpcAddress);
  const before = (await eventsOf(base, buyer, ledgerId)).length;
  const masterOf = (n: number): Master => (n % 10 === 0 ? master : sibling);
  const requests = Array.from({ length: ledgerSize - before }, (_, n) => streamed(masterOf(n), buyer, n, { n }));
  const outcomes = await sendAll(client, buyer, requests);
  client.close();
  expect(outcomes.filter(({ code }) => code !== null)).toEqual([]);
}

// A large tree is made in the background.
await vi.waitFor(() => done(base, 'GET', `/v1/ledgers/${ledgerId}/checkpoint`, buyer), 60_000);

/** A backup of the same, restored: its store is behind. */
const restored = join(root, 'restored');
expect(await runHere(['backup', restored], { env: { DATA_DIR: node.dataDir } })).toMatchObject({ code: 0 });
const behind = await runNode({ dataDir: restored, env });
afterAll(() => behind[Symbol.asyncDispose]());

const anchor = await done(base, 'GET', '/.well-known/svc-authority');
const keys = anchor.rows('log.keys').map(({ public_key }) => knownKey(String(public_key)));
const ledgerOrigin = `ledger.example/v1/ledgers/${ledgerId}`;
const masterOrigin = `ledger.example/v1/masters/${master.uuid}`;
const ofLedger = (by: Party, path: string, at = base) => rest(at, 'GET', `/v1/ledgers/${ledgerId}/${path}`, by);
const ofMasterLog = (by: Party, path: string, at = base) =>
  rest(at, 'GET', `/v1/traceledger/master/${master.uuid}/${path}`, by);
const aMaster = (at: number) => ofMaster.at(at) ?? expect.fail('no such event');
const aSibling = (at: number) => ofSibling.at(at) ?? expect.fail('no such event');

describe('each method answers alike on every protocol', () => {
  type Proofs = RpcClient<typeof ProofService>;
  const of = ProofService.method;
  const [seq, headers] = [5, { headers: buyer.bearer }];
  const ledgerPath = `/v1/ledgers/${ledgerId}`;
  const masterPath = `/v1/traceledger/master/${master.uuid}`;
  const inLedger = { ledgerId };
  const inMaster = { uuid: master.uuid };
  const methods: readonly [string, path: string, byRpc: (proofs: Proofs) => Promise<string>][] = [
    [
      'GetLedgerCheckpoint',
      `${ledgerPath}/checkpoint?size=7`,
      async (proofs) =>
        restJson(of.getLedgerCheckpoint.output, await proofs.getLedgerCheckpoint({ ...inLedger, size: 7n }, headers)),
    ],
    [
      'GetLedgerInclusion',
      `${ledgerPath}/proof/inclusion?seq=${seq}&size=9`,
      async (proofs) => {
        const request = { ...inLedger, seq: BigInt(seq), size: 9n };
        return restJson(of.getLedgerInclusion.output, await proofs.getLedgerInclusion(request, headers));
      },
    ],
    [
      'GetLedgerConsistency',
      `${ledgerPath}/proof/consistency?from=3&to=8`,
      async (proofs) => {
        const request = { ...inLedger, from: 3n, to: 8n };
        return restJson(of.getLedgerConsistency.output, await proofs.getLedgerConsistency(request, headers));
      },
    ],
    [
      'GetMasterCheckpoint',
      `${masterPath}/checkpoint`,
      async (proofs) => restJson(of.getMasterCheckpoint.output, await proofs.getMasterCheckpoint(inMaster, headers)),
    ],
    [
      'GetMasterInclusion',
      `${masterPath}/proof/inclusion?event_id=${aMaster(2).id}`,
      async (proofs) => {
        const request = { ...inMaster, eventId: aMaster(2).id };
        return restJson(of.getMasterInclusion.output, await proofs.getMasterInclusion(request, headers));
      },
    ],
    [
      'GetMasterConsistency',
      `${masterPath}/proof/consistency?from=2`,
      async (proofs) =>
        restJson(of.getMasterConsistency.output, await proofs.getMasterConsistency({ ...inMaster, from: 2n }, headers)),
    ],
  ];
  const transports: readonly [string, Transport][] = [
    ['gRPC', createGrpcTransport({ baseUrl: `http://${node.grpcAddress}` })],
    ['Connect JSON', createConnectTransport({ baseUrl: base, httpVersion: '1.1', useBinaryFormat: false })],
    ['Connect binary', createConnectTransport({ baseUrl: base, httpVersion: '1.1', useBinaryFormat: true })],
    ['gRPC-Web', createGrpcWebTransport({ baseUrl: base, httpVersion: '1.1' })],
  ];

  test.each(methods)('%s', async (_, path, byRpc) => {
    const { raw } = await done(base, 'GET', path, headers);
    for (const [transport, made] of transports)
      expect([transport, await byRpc(createClient(ProofService, made))]).toEqual([transport, raw]);
  });
});

describe('over REST', () => {
  test('checkpoints and proofs verify, and sizes are numbers', async () => {
    const newest = await ofLedger(buyer, 'checkpoint');
    const { root } = verifyCheckpoint(newest.text('checkpoint'), ledgerOrigin, keys);
    const rootHash = Buffer.from(root).toString('base64');
    const checkpoint = newest.text('checkpoint');
    expect(newest.body).toEqual({ origin: ledgerOrigin, size: ledgerSize, root_hash: rootHash, checkpoint });
    for (const event of [events[0], events[100], events[ledgerSize - 1]]) {
      if (event === undefined) throw new Error('no such event');
      const { body } = await ofLedger(buyer, `proof/inclusion?event_id=${event.id}`);
      const expected = { index: event.seq, record: Buffer.from(event.hash, 'hex'), origin: ledgerOrigin, keys };
      expect(verifyProofFile(String(body.proof), expected).size).toBe(ledgerSize);
      const prevHash = events[event.seq - 1]?.hash ?? '';
      const { proof, ...others } = body;
      expect(others).toEqual({ origin: ledgerOrigin, index: event.seq, size: ledgerSize, prev_hash: prevHash });
    }
    const { body } = await ofLedger(buyer, 'proof/consistency?from=100');
    const [older, newer] = [body.checkpoint_from, body.checkpoint_to].map((note) =>
      verifyCheckpoint(String(note), ledgerOrigin, keys),
    );
    expect(body).toMatchObject({ origin: ledgerOrigin, from: 100, to: ledgerSize, checkpoint_to: checkpoint });
    const hashes = (body.hashes as string[]).map((hash) => decodeBase64(hash, 32) ?? Buffer.alloc(0));
    if (older === undefined || newer === undefined) throw new Error('no checkpoints');
    const [oldOf, newOf] = [
      { oldSize: older.size, oldRoot: older.root },
      { newSize: newer.size, newRoot: newer.root },
    ];
    expect([older.size, isConsistent({ ...oldOf, ...newOf, hashes })]).toEqual([100, true]);
  });

  test.each([
    ['checkpoint?size=0', 400],
    [`checkpoint?size=${ledgerSize + 1}`, 400],
    ['proof/inclusion', 400],
    ['proof/inclusion?seq=1&event_id=0199aaaa-0000-7000-8000-00000000dead', 400],
    [`proof/inclusion?seq=${ledgerSize}`, 400],
    ['proof/inclusion?seq=3&size=3', 400],
    ['proof/inclusion?event_id=0199aaaa-0000-7000-8000-00000000dead', 404],
    ['proof/consistency', 400],
    ['proof/consistency?from=0', 400],
    ['proof/consistency?from=4&to=3', 400],
    [`proof/consistency?from=1&to=${ledgerSize + 1}`, 400],
  ])('GET …/%s is refused with %d', async (path, status) => {
    expectRefused(await ofLedger(buyer, path), status, status === 400 ? 'invalid_argument' : 'not_found');
  });

  test('all proofs of a store that is behind are unavailable, and say why and when to ask again', async () => {
    const ofBoth = [
      ...['checkpoint', 'proof/inclusion?seq=0', 'proof/consistency?from=1', `checkpoint?size=${ledgerSize + 1}`].map(
        (path) => ofLedger(buyer, path, behind.base),
      ),
      ...['checkpoint', 'proof/inclusion?master_seq=0', 'proof/consistency?from=1'].map((path) =>
        ofMasterLog(buyer, path, behind.base),
      ),
    ];
    for (const answer of await Promise.all(ofBoth)) {
      expectRefused(answer, 503, 'unavailable');
      expect(answer.body.error).toMatchObject({ details: { reason: 'log_behind' } });
      expect(answer.headers.get('retry-after')).toBe('1');
    }
    expect((await ofLedger(buyer, 'events?limit=1', behind.base)).status).toBe(200);
  });
});

/** An answer without what names the call. */
const wordsOf = ({ status, raw }: RestAnswer) => [status, raw.replace(/"request_id":"[^"]*"/, '')];

/** Whether the text tells the number of the ledger's events, or the seq of the last one. Hashes and ids are words. */
function tellsSize({ raw }: RestAnswer): boolean {
  const numbers = [ledgerSize, ledgerSize - 1].join('|');
  return new RegExp(`(?<![0-9A-Za-z+/=-])(${numbers})(?![0-9A-Za-z+/=-])`).test(
    raw.replace(/"request_id":"[^"]*"/, ''),
  );
}

test('the size of the ledger is found where it is told', async () => {
  expect(tellsSize(await ofLedger(buyer, 'checkpoint'))).toBe(true);
  expect(tellsSize(await ofLedger(buyer, `checkpoint?size=${ledgerSize - 1}`))).toBe(true);
  expect(tellsSize(await ofLedger(buyer, `checkpoint?size=${ledgerSize - 2}`))).toBe(false);
});

describe.each([
  ['whole', base],
  ['behind', behind.base],
])('a delegate of one master learns nothing of the size of its ledger while the log is %s', (state, at) => {
  const get = async (path: string): Promise<RestAnswer> => {
    // On a busy machine a read may end before all of it was read.
    const answer = await vi.waitFor(async () => {
      const got = await ofLedger(delegate, path, at);
      if (/"The call ended before/.test(got.raw)) throw new Error(got.raw);
      return got;
    }, 60_000);
    expect([path, tellsSize(answer)]).toEqual([path, false]);
    return answer;
  };

  test('from checkpoints and consistency, which it does not get', async () => {
    for (const size of ['', 'size=1', `size=${ledgerSize}`, `size=${ledgerSize + 1}`])
      expectRefused(await get(`checkpoint?${size}`), 403, 'permission_denied');
    for (const sizes of ['from=1', `from=1&to=${ledgerSize}`, `from=${ledgerSize + 1}`])
      expectRefused(await get(`proof/consistency?${sizes}`), 403, 'permission_denied');
  });

  test('from inclusion at any size but the own place, also beyond the head', { timeout: 900_000 }, async () => {
    const { seq, id } = aMaster(-2);
    const names = [
      `seq=${seq}`,
      `event_id=${id}`,
      `seq=${ledgerSize}`,
      `seq=${ledgerSize + 7}`,
      `seq=${aSibling(-1).seq}`,
    ];
    for (const name of names) expectRefused(await get(`proof/inclusion?${name}`), 403, 'permission_denied');
    const sizes = [1, 2, seq, seq + 2, ledgerSize - 1, ledgerSize, ledgerSize + 1, ledgerSize + 2, 10 * ledgerSize];
    const everySize = Array.from({ length: ledgerSize + 3 }, (_, at) => at + 1);
    for (const [at, name] of names.entries()) {
      const ownPlace = name.startsWith('event_id') ? seq + 1 : Number(name.slice('seq='.length)) + 1;
      // In the nightly run every size of the first two names.
      const wanted = isNightly && at < 2 ? [...everySize, 10 * ledgerSize] : sizes;
      const left = wanted.filter((size) => size !== ownPlace).values();
      const askAll = async () => {
        for (const size of left)
          expectRefused(await get(`proof/inclusion?${name}&size=${size}`), 403, 'permission_denied');
      };
      await Promise.all(Array.from({ length: 8 }, askAll));
    }
  });

  test('from events that it may not read: those of siblings are as unknown as those beyond the head', async () => {
    const paths = [
      ...[aSibling(0).seq, aSibling(-1).seq, ledgerSize, ledgerSize + 1, 2 ** 53 - 2].map(
        (seq) => `seq=${seq}&size=${seq + 1}`,
      ),
      ...[aSibling(3).id, '0199aaaa-0000-7000-8000-00000000dead'].map((id) => `event_id=${id}&size=1`),
      `event_id=${aSibling(3).id}&size=${aSibling(3).seq + 1}`,
    ];
    const [first, ...others] = await Promise.all(paths.map((path) => get(`proof/inclusion?${path}`)));
    if (first === undefined) throw new Error('no answer');
    expectRefused(first, 404, 'not_found');
    for (const other of others) expect(wordsOf(other)).toEqual(wordsOf(first));
  });

  test('from what it gets: its events at their own places, and its master', async () => {
    for (const event of [...ofMaster.slice(0, 3), ...ofMaster.slice(-3), ...events.slice(0, 2)])
      for (const name of [`seq=${event.seq}`, `event_id=${event.id}`]) {
        const answer = await get(`proof/inclusion?${name}&size=${event.seq + 1}`);
        if (state === 'whole') {
          const expected = { index: event.seq, record: Buffer.from(event.hash, 'hex'), origin: ledgerOrigin, keys };
          expect(verifyProofFile(answer.text('proof'), expected).size).toBe(event.seq + 1);
        } else {
          expectRefused(answer, 503, 'unavailable');
          expect(answer.body.error).toMatchObject({ details: { reason: 'log_behind' } });
        }
      }
    for (const path of ['checkpoint', 'proof/inclusion?master_seq=1', 'proof/consistency?from=1']) {
      const answer = await ofMasterLog(delegate, path, at);
      expect([path, tellsSize(answer), answer.status]).toEqual([path, false, state === 'whole' ? 200 : 503]);
      if (state === 'whole') expect(answer.body.origin).toBe(masterOrigin);
    }
  });

  test('and a stranger gets not_found for all of it', async () => {
    const ledgerPaths = [
      'checkpoint',
      `checkpoint?size=${ledgerSize + 1}`,
      'proof/inclusion?seq=0&size=1',
      'proof/consistency?from=1',
    ];
    const masterPaths = ['checkpoint', 'proof/inclusion?master_seq=0', 'proof/consistency?from=1'];
    const calls = [
      ...ledgerPaths.map((path) => ofLedger(stranger, path, at)),
      ...masterPaths.map((path) => ofMasterLog(stranger, path, at)),
    ];
    for (const answer of await Promise.all(calls)) {
      expectRefused(answer, 404, 'not_found');
      expect(tellsSize(answer)).toBe(false);
    }
  });
});
