import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  authorityKeysOf,
  type ClientOptions,
  createClient,
  type Event,
  keysFromResolver,
  type LedgerTrustClient,
  publicKeyBase64,
  signerFromPrivateKey,
  verifyEvents,
} from '../../src/client/index.ts';
import { nodeForTests } from '../support/node-for-tests.ts';
import { runHere } from '../support/program-here.ts';
import { newShell } from '../support/shell.ts';

const node = await nodeForTests();
const address = { baseUrl: node.base, grpcUrl: `http://${node.grpcAddress}` };
const clients: LedgerTrustClient[] = [];
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
});

function connect(options: ClientOptions): LedgerTrustClient {
  const client = createClient({ ...address, ...options });
  clients.push(client);
  return client;
}

let registered = 0;
async function register(transport: 'rest' | 'grpc', keyed = true) {
  const { privateKey } = generateKeyPairSync('ed25519');
  const name = `party ${++registered}`;
  const enrol = keyed ? { publicKey: publicKeyBase64(privateKey) } : {};
  const { sandbox } = await connect({ transport }).registerDeveloper({
    name,
    email: 'a@party.example',
    region: 'eu',
    ...enrol,
  });
  const { apiKey, actorId, svcId, signingKey } = sandbox;
  const signer = signingKey === null ? {} : { signer: signerFromPrivateKey(privateKey, signingKey.kid) };
  return { apiKey, actorId, svcId, privateKey, client: connect({ transport, apiKey, ...signer }) };
}

/** Everything is in order. The events of one master have no tie to their ledger. */
async function expectSound(
  client: LedgerTrustClient,
  events: AsyncIterable<Event>,
  kind: 'ledger' | 'master' = 'ledger',
) {
  const authorityKeys = authorityKeysOf(await client.getAuthority());
  const read = await Array.fromAsync(events);
  const { ledgerId = '', masterId } = read[0] ?? {};
  const checkpoint = await (kind === 'ledger' ? client.checkpoint(ledgerId) : client.masterCheckpoint(masterId ?? ''));
  const result = await verifyEvents(read, {
    keys: keysFromResolver(client),
    authorityKeys,
    trustedKeys: 'all',
    kind,
    checkpoint,
  });
  expect(result.issues).toEqual([]);
  const open = result.incomplete.map(({ type }) => type);
  expect(open).toEqual(kind === 'ledger' ? [] : ['hash_unchecked']);
  return result;
}

describe.each(['rest', 'grpc'] as const)('over %s', (transport) => {
  it('every signed call in the life of a ledger is accepted, and the ledger verifies', async () => {
    const [supplier, buyer, carrier] = await Promise.all([
      register(transport),
      register(transport),
      register(transport),
    ]);
    const { client } = supplier;
    const delegateActorId = carrier.actorId;
    const onboarding = {
      legalName: 'S',
      country: 'DE',
      vatTaxNumber: '1',
      primaryEmail: 's@party.example',
      termsVersion: '1.0',
      declarationHash: 'x',
    };
    const { organizationId, frlLedgerId } = await client.onboardOrganization(onboarding);
    const ledger = await client.createLedger({ buyerSvcId: buyer.svcId });
    expect(ledger).toMatchObject({ supplierOrganizationId: organizationId, buyerOrganizationId: null, status: 'OPEN' });
    const master = await client.createMaster({ ledgerId: ledger.id, businessRef: 'PO-1 ü', scope: 'ORDER' });
    const uuid = master.uuid;

    const role = 'OPS';
    await client.grantOrganizationDelegation({
      organizationId,
      delegateActorId,
      role,
      permissions: { access: 'read', z: [1] },
    });
    await client.revokeOrganizationDelegation({ organizationId, delegateActorId });
    await client.grantLedgerDelegation({ ledgerId: ledger.id, delegateActorId, role });
    await client.revokeLedgerDelegation({ ledgerId: ledger.id, delegateActorId });
    await client.grantMasterDelegation({ masterId: uuid, delegateActorId, role, permissions: { access: 'write' } });
    const second = await carrier.client.appendEvent({
      uuid,
      eventType: 'PICKED_UP',
      payload: { '€': 1.5, list: [null, { b: -0 }] },
    });
    await client.revokeMasterDelegation({ masterId: uuid, delegateActorId });
    const access = await client.grantMasterAccess({
      uuid,
      actorId: delegateActorId,
      access: 'read',
      expiresAt: '2099-01-01T00:00:00+01:00',
    });
    expect((await client.listMasterAccess({ uuid })).access).toMatchObject([{ linkId: access.linkId }]);
    expect(await client.revokeMasterAccess({ uuid, linkId: access.linkId })).toBeUndefined();
    const deliveryChain = [{ actorId: delegateActorId, actorType: 'service', role: 'CARRIER' }] as const;
    await client.appendEvent(
      { uuid, eventType: 'CORRECTION_NOTE', payload: { caused_by_hash: second.hash } },
      { deliveryChain },
    );
    expect(await client.closeMaster({ uuid })).toMatchObject({ status: 'CLOSED' });
    expect(await client.closeLedger({ ledgerId: ledger.id })).toEqual({ ledgerId: ledger.id, status: 'CLOSED' });
    expect(await client.closeLedger({ ledgerId: frlLedgerId })).toMatchObject({ status: 'CLOSED' });

    const { checked } = await expectSound(client, client.ledgerEvents(ledger.id, { limit: 3 }));
    expect(checked.events).toBe(13);
    expect(checked.actorSignatures).toBe(10);
    await expectSound(client, client.ledgerEvents(frlLedgerId));
    await expectSound(client, client.masterEvents(uuid), 'master');
    await expectSound(client, client.ledgerEvents(ledger.id));
  });

  it('an actor without keys appends unsigned, and its ledger verifies', async () => {
    const [supplier, buyer] = await Promise.all([register(transport, false), register(transport)]);
    const ledger = await supplier.client.createLedger({ buyerActorId: buyer.actorId });
    const { uuid } = await supplier.client.createMaster({ ledgerId: ledger.id, businessRef: 'r', scope: 'ORDER' });
    await supplier.client.appendEvent({ uuid, eventType: 'A', payload: {} });
    await supplier.client.closeMaster({ uuid });
    await expectSound(supplier.client, supplier.client.ledgerEvents(ledger.id));
  });

  it('an entity with a key signs requests and events', async () => {
    const owner = await register(transport);
    const { privateKey } = generateKeyPairSync('ed25519');
    const made = await owner.client.onboardEntity({
      displayName: 'Loom',
      entityType: 'MACHINE',
      uniqueId: `loom ${transport}`,
      ownerActorId: owner.actorId,
      publicKey: publicKeyBase64(privateKey),
      metadata: { plant: 'Augsburg' },
    });
    const identity = { transport, entity: { actorId: made.actorId, actorType: 'device' } } as const;
    const entity = connect({ ...identity, signer: signerFromPrivateKey(privateKey) });
    const { ledgerId } = await entity.createRootLedger();
    expect(await entity.getRootLedger({ actorId: made.actorId })).toMatchObject({ ledgerId, status: 'OPEN' });
    expect(await entity.setArlGate({ requireArl: true })).toMatchObject({ requireArl: true });
    const { uuid } = await entity.createMaster({ ledgerId, businessRef: 'r', scope: 'PROCESS' });
    await entity.appendEvent({ uuid, eventType: 'READING', payload: { count: 1 } });
    const stream = entity.appendStream();
    await stream.append({ uuid, eventType: 'READING', payload: { count: 2 } });
    await stream.close();
    await entity.closeMaster({ uuid });
    await entity.closeRootLedger({ actorId: made.actorId });
    await expectSound(entity, entity.ledgerEvents(ledgerId));

    const engagement = await entity.createEngagement({ counterpartyActorId: owner.actorId, purpose: 'INSPECTION' });
    const other = await entity.createMaster({ ledgerId: engagement.ledgerId, businessRef: 'r', scope: 'PROCESS' });
    await entity.closeMaster({ uuid: other.uuid });
    await owner.client.closeEngagement({ ledgerId: engagement.ledgerId });
    await expectSound(owner.client, owner.client.ledgerEvents(engagement.ledgerId));

    const bare = connect(identity);
    await expect(bare.getRootLedger({ actorId: made.actorId })).rejects.toMatchObject({ code: 'signature_required' });
    const stranger = connect({ ...identity, signer: signerFromPrivateKey(generateKeyPairSync('ed25519').privateKey) });
    await expect(stranger.getRootLedger({ actorId: made.actorId })).rejects.toMatchObject({
      code: 'invalid_signature',
    });
  });

  it('the same idempotency key returns the same answer and reports the replay', async () => {
    const { client } = await register(transport);
    const replays: boolean[] = [];
    const options = {
      idempotencyKey: 'k-1',
      onAnswer: ({ replayed }: { replayed: boolean }) => replays.push(replayed),
    };
    const first = await client.createApiKey({ name: 'n' }, options);
    expect(await client.createApiKey({ name: 'n' }, options)).toEqual(first);
    expect(replays).toEqual([false, true]);
    await expect(client.createApiKey({ name: 'other' }, options)).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });
  });

  it('errors carry code, details, request id and status', async () => {
    const { client } = await register(transport);
    const request = client.getLedger({ ledgerId: '01997f3e-5a10-7c21-9d4e-1b2c3d4e5f60' }, { requestId: 'mine-1' });
    await expect(request).rejects.toMatchObject({
      name: 'LedgerTrustError',
      code: 'not_found',
      requestId: 'mine-1',
      status: transport === 'rest' ? 404 : null,
      grpcStatus: transport === 'rest' ? null : 5,
    });
    await expect(client.listLedgers({ limit: 5_000 })).rejects.toMatchObject({
      code: 'invalid_argument',
      details: { field: 'limit' },
    });
    const nobody = connect({ transport });
    await expect(nobody.listLedgers()).rejects.toMatchObject({ code: 'unauthenticated' });
  });

  it('a signature by another key is refused with the expected event type', async () => {
    const [supplier, buyer] = await Promise.all([register(transport), register(transport)]);
    const ledger = await supplier.client.createLedger({ buyerActorId: buyer.actorId });
    const kid = `${supplier.svcId}#key-1`;
    const forger = connect({
      transport,
      apiKey: supplier.apiKey,
      signer: signerFromPrivateKey(Buffer.alloc(32, 9), kid),
    });
    const forged = forger.createMaster({ ledgerId: ledger.id, businessRef: 'r', scope: 'ORDER' });
    await expect(forged).rejects.toMatchObject({
      code: 'invalid_signature',
      details: { event_type: 'TRACELEDGER_MASTER_CREATED' },
    });
  });
});

describe('an append stream', () => {
  it('keeps the order of each ledger, and refused events do not end it', async () => {
    const [supplier, buyer] = await Promise.all([register('rest'), register('rest')]);
    const { client } = supplier;
    const masters: string[] = [];
    for (let at = 0; at < 3; at += 1) {
      const ledger = await client.createLedger({ buyerActorId: buyer.actorId });
      masters.push((await client.createMaster({ ledgerId: ledger.id, businessRef: `r${at}`, scope: 'ORDER' })).uuid);
    }
    const events = Array.from({ length: 300 }, (_, n) => ({
      uuid: masters[n % 3] ?? '',
      eventType: n === 150 ? 'GENESIS' : 'STEP',
      payload: { n },
    }));
    await using stream = client.appendStream();
    const errors: unknown[] = [];
    let n = 0;
    for await (const { event, error } of stream.appendAll(events)) {
      expect(event.payload).toEqual({ n: n++ });
      if (error !== null) errors.push(error);
    }
    expect(errors).toMatchObject([{ code: 'reserved_event_type' }]);
    for (const [at, uuid] of masters.entries()) {
      const steps: unknown[] = [];
      for await (const { eventType, payload } of client.masterEvents(uuid))
        if (eventType === 'STEP') steps.push(payload.n);
      const expected = events.flatMap(({ payload }) => (payload.n % 3 === at && payload.n !== 150 ? [payload.n] : []));
      expect(steps).toEqual(expected);
    }
  });

  it('sent twice with the same keys records each event once', async () => {
    const [supplier, buyer] = await Promise.all([register('grpc'), register('grpc')]);
    const { client } = supplier;
    const ledger = await client.createLedger({ buyerActorId: buyer.actorId });
    const { uuid } = await client.createMaster({ ledgerId: ledger.id, businessRef: 'r', scope: 'ORDER' });
    const events = [0, 1, 2].map((n) => ({ uuid, eventType: 'STEP', payload: { n }, idempotencyKey: `step-${n}` }));
    const seqs: number[][] = [];
    for (const replayed of [false, true]) {
      await using stream = client.appendStream();
      const outcomes = await Promise.all(events.map((event) => stream.append(event)));
      expect(outcomes.map((outcome) => outcome.replayed)).toEqual([replayed, replayed, replayed]);
      seqs.push(outcomes.map(({ seq }) => seq));
    }
    expect(seqs[1]).toEqual(seqs[0]);
  });
});

describe('ledger-trust export and verify', () => {
  const { dir, run } = newShell();

  it('write a file that verifies offline and online, and not after a change', async () => {
    const [supplier, buyer] = await Promise.all([register('rest'), register('rest')]);
    const ledger = await supplier.client.createLedger({ buyerActorId: buyer.actorId });
    // Characters that end lines elsewhere stand in JSON as they are.
    const businessRef = 'a\u2028b\u2029c';
    const { uuid } = await supplier.client.createMaster({ ledgerId: ledger.id, businessRef, scope: 'ORDER' });
    const payload = { amount: 100, note: '\u2028 \u0085 \r\n' };
    await supplier.client.appendEvent({ uuid, eventType: 'INVOICE_RAISED', payload });
    const out = join(dir, 'export.jsonl');
    const args = ['export', ledger.id, '--url', address.baseUrl, '--out', out];
    expect(await run(args, '', { LEDGER_TRUST_API_KEY: supplier.apiKey })).toEqual({
      code: 0,
      out: '',
      err: `Exported 4 events of ledger ${ledger.id} to ${out}.\n`,
    });
    const env = { LEDGER_TRUST_API_KEY: supplier.apiKey };
    const again = await runHere([...args.slice(0, -1), `${out}.again`, '--json'], { env });
    const shown = { ledger_id: ledger.id, kind: 'ledger', count: 4, issues: 0, file: `${out}.again` };
    expect({ ...again, out: JSON.parse(again.out) }).toEqual({ code: 0, out: shown, err: '' });

    // The keys come from the file alone.
    const offline = await runHere(['verify', out]);
    expect({ code: offline.code, wrong: offline.out.includes('✗') }).toEqual({ code: 2, wrong: false });
    expect(offline.out).toContain('2 of actors');
    expect(offline.out).toContain(`4 of ledger ${ledger.id}\n`);
    const online = await run(['verify', out, '--resolver', address.baseUrl, '--json']);
    expect(online.code).toBe(0);
    expect(JSON.parse(online.out)).toMatchObject({ verdict: 'valid', issues: [], incomplete: [] });

    const changed = join(dir, 'changed.jsonl');
    writeFileSync(changed, readFileSync(out, 'utf8').replace('"amount":100', '"amount":900'));
    expect((await runHere(['verify', changed])).code).toBe(1);
    expect((await runHere(['verify', changed, '--resolver', address.baseUrl])).code).toBe(1);
  });

  it('write a segment for a delegate of a master, and its master verifies as one', async () => {
    const [supplier, buyer, carrier] = await Promise.all([register('rest'), register('rest'), register('rest')]);
    const { client } = supplier;
    const ledger = await client.createLedger({ buyerActorId: buyer.actorId });
    const [theirs, other] = [
      await client.createMaster({ ledgerId: ledger.id, businessRef: 'a', scope: 'ORDER' }),
      await client.createMaster({ ledgerId: ledger.id, businessRef: 'b', scope: 'ORDER' }),
    ];
    const delegateActorId = carrier.actorId;
    await client.grantMasterDelegation({ masterId: theirs.uuid, delegateActorId, role: 'OPS', permissions: {} });
    await client.appendEvent({ uuid: other.uuid, eventType: 'NOTED', payload: {} });
    await client.appendEvent({ uuid: theirs.uuid, eventType: 'NOTED', payload: {} });
    const shown = async (apiKey: string, ...subject: string[]) => {
      const args = ['export', ...subject, '--url', address.baseUrl];
      const { code, out, err } = await runHere(args, { env: { LEDGER_TRUST_API_KEY: apiKey } });
      expect({ code, err }).toEqual({ code: 0, err: '' });
      const verified = await runHere(['verify', '-', '--json', '--resolver', address.baseUrl], { input: out });
      const { issues, incomplete, checked, ledger_id, master_id } = JSON.parse(verified.out);
      expect([ledger_id, master_id]).toEqual([ledger.id, subject[1] ?? null]);
      expect(JSON.parse(out.split('\n', 1)[0] ?? '').master_id ?? null).toBe(master_id);
      const { end } = JSON.parse(out.trimEnd().split('\n').at(-1) ?? '');
      const reasons = (incomplete as { type: string }[]).map(({ type }) => type);
      return { code: verified.code, end, issues, reasons, contents: checked.content_hashes };
    };

    const whole = await shown(supplier.apiKey, ledger.id);
    expect(whole).toEqual({
      code: 0,
      end: { count: 7, kind: 'ledger' },
      issues: [],
      reasons: [],
      contents: 7,
    });
    const segment = await shown(carrier.apiKey, ledger.id);
    expect(segment).toMatchObject({ code: 2, end: { count: 5, kind: 'segment' }, issues: [] });
    expect(segment.reasons).toContain('middle_unknown');
    const master = await shown(carrier.apiKey, '--master', theirs.uuid);
    expect(master).toEqual({
      code: 2,
      end: { count: 3, kind: 'master' },
      issues: [],
      reasons: ['hash_unchecked'],
      contents: 3,
    });
  });

  it('fail with a sentence and leave no file if the key may not read the ledger', async () => {
    const stranger = await register('rest');
    const keyFile = join(dir, 'api-key');
    writeFileSync(keyFile, `${stranger.apiKey}\n`);
    const out = join(dir, 'none.jsonl');
    const ledgerId = '01997f3e-5a10-7c21-9d4e-1b2c3d4e5f60';
    const { code, err } = await runHere([
      'export',
      ledgerId,
      '--url',
      address.baseUrl,
      '--api-key-file',
      keyFile,
      '--out',
      out,
    ]);
    expect(code).toBe(1);
    expect(err).toMatch(/^ledger-trust: There is no such ledger/);
    expect(() => readFileSync(out)).toThrow();
    expect(readdirSync(dir).filter((name) => name.startsWith('none.jsonl'))).toEqual([]);
  });
});
