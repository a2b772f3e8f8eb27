import { create, type Message } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { type ErrorCode, LedgerError } from '../../../../src/domain/errors.ts';
import type { IncomingCall } from '../../../../src/rpc/call/incoming-call.ts';
import { endpointsOf } from '../../../../src/rpc/endpoints/endpoint.ts';
import { apiServices } from '../../../../src/rpc/endpoints/routes.ts';
import { createAnswerLog } from '../../../../src/rpc/pipeline/answer-log.ts';
import { createCallRates } from '../../../../src/rpc/pipeline/call-rates.ts';
import { PipelineCall } from '../../../../src/rpc/pipeline/pipeline-call.ts';
import { createLog } from '../../../../src/runtime/telemetry/log.ts';
import { createMetrics } from '../../../../src/runtime/telemetry/metrics.ts';
import type { AccessEntry } from '../../../../src/service/audit/access-history.ts';
import { type AccessRecord, accessPathMaxChars } from '../../../../src/service/audit/access-record.ts';
import type { Call, Caller } from '../../../../src/service/calls/call.ts';
import type { WalkParts } from '../../../../src/service/walking/walk.ts';
import { heldBytes } from '../../../support/held-bytes.ts';

const ledgerId = '0199dddd-0000-7000-8000-000000000001';
const otherLedgerId = '0199dddd-0000-7000-8000-000000000002';
const masterId = '0199cccc-0000-7000-8000-000000000001';
const caller: Caller = {
  actorId: '0199aaaa-0000-7000-8000-000000000001',
  world: 'sandbox',
  via: 'api_key',
  apiKeyId: 'key',
  actorType: 'service',
  mustSign: false,
};
const entity: Caller = { ...caller, via: 'entity_header', apiKeyId: null, actorType: 'device', mustSign: true };

const handler = async () => ({});
/** The ledger of a master. It is looked up if the call was refused. */
const byUuid = (request: Message, call: Call, refused: boolean): Promise<void> | undefined => {
  if (!('uuid' in request) || request.uuid !== masterId) return undefined;
  if (refused) return Promise.resolve().then(() => call.named(ledgerId));
  call.named(ledgerId);
  return undefined;
};
const endpoints = endpointsOf(
  apiServices.map((service) => ({
    service,
    handlers: Object.fromEntries(service.methods.map((method) => [method.localName, handler])),
    names: service.name === 'MasterService' ? { appendEvent: byUuid } : ({} as Record<string, never>),
  })),
);

/** Answers a call of a method, and returns the records that its answer leaves. */
async function answered(
  method: string,
  path: string,
  over: {
    readonly caller?: Caller | null;
    readonly named?: readonly (string | null)[];
    /** undefined if the request was not read. */
    readonly request?: Readonly<Record<string, string>>;
    /** What can be read of a request that was refused before it was decoded. */
    readonly readable?: Readonly<Record<string, string>>;
    readonly inPlace?: boolean;
    readonly verified?: boolean;
    readonly recorded?: boolean;
  },
  code: ErrorCode | null,
  room?: Promise<void>,
): Promise<{ readonly records: AccessRecord[]; readonly waits: Promise<void> | undefined; readonly late: boolean }> {
  const endpoint = endpoints.get(`/svc.v1.${method}`);
  if (endpoint === undefined) throw new Error(`No method ${method}`);
  const entries: AccessEntry[] = [];
  const answers = createAnswerLog({
    log: createLog('silent', { write: () => {} }),
    metrics: createMetrics(),
    history: (entry) => {
      entries.push(entry);
      return room;
    },
    monotonicMs: () => 0,
    now: () => 1000,
  });
  let read = 0;
  const message = (fields: Readonly<Record<string, string>>) => create(endpoint.method.input, fields);
  const readable = () => {
    read += 1;
    return message(over.readable ?? {});
  };
  const header = (name: string) => (name === 'x-request-id' ? 'request' : undefined);
  const equivalent = () => ({ verb: 'GET', path });
  const incoming = { transport: 'rest', timeoutMs: 10_000, header, equivalent, readable } as unknown as IncomingCall;
  const off = { perSecond: 0, burst: 0 };
  const rates = createCallRates({ create: off, append: off, call: off });
  const random = (length: number) => Buffer.alloc(length);
  const parts = { rates, walks: {} as WalkParts, answers, random, now: () => 0, monotonicMs: () => 0 };
  const call = new PipelineCall(parts, endpoint, incoming, 10_000);
  call.caller = over.caller === undefined ? caller : over.caller;
  call.answered = over.inPlace === true;
  call.isRecorded = over.recorded ?? true;
  if (over.verified === true) call.markVerified();
  for (const name of over.named ?? []) call.named(name);
  if (over.request !== undefined) call.request = message(over.request);
  const waits =
    code === null
      ? answers.succeeded(call, incoming)
      : answers.failed(call, incoming, new LedgerError(code, 'refused'));
  expect(read).toBe(0);
  await waits;
  const records = (await Promise.all(entries)).flat();
  return { records, waits, late: entries.some((entry) => entry instanceof Promise) };
}

const master = ['MasterService/AppendEvent', `/v1/traceledger/master/${masterId}/events`] as const;
const ledger = ['LedgerService/ListLedgerEvents', `/v1/ledgers/${ledgerId}/events`] as const;

/** The ledgers of the records. */
async function ledgersOf(...call: Parameters<typeof answered>): Promise<(string | null)[]> {
  return (await answered(...call)).records.map((one) => one.ledgerId);
}

describe('the access records of an answer', () => {
  test('are one for each named ledger, and the answer waits if the history has no room', async () => {
    const room = Promise.resolve();
    const both = await answered(...master, { named: [ledgerId, otherLedgerId, ledgerId] }, null, room);
    expect(both.records.map((one) => one.ledgerId)).toEqual([ledgerId, otherLedgerId]);
    expect(both.waits).toBeDefined();
    expect((await answered(...master, { named: [ledgerId] }, null, room)).waits).toBe(room);
    const { records, waits } = await answered(...master, { named: [null] }, 'not_found');
    expect(waits).toBeUndefined();
    const who = { actorId: caller.actorId, apiKeyId: 'key', requestId: 'request' };
    expect(records).toEqual([
      { ...who, ledgerId: null, method: 'GET', path: master[1], responseStatus: 404, at: 1000 },
    ]);
  });

  test('are none without a caller, and none for a call that names nothing', async () => {
    expect(await ledgersOf(...ledger, { caller: null, readable: { ledgerId } }, 'unauthenticated')).toEqual([]);
    for (const [method, path, code] of [
      ['DeveloperService/GetDeveloper', '/v1/developer/me', null],
      ['LedgerService/ListLedgers', '/v1/ledgers', 'invalid_argument'],
      ['WebhookService/DeleteWebhook', `/v1/webhooks/${masterId}`, 'not_found'],
    ] as const) {
      const { records, late } = await answered(method, path, {}, code);
      expect([records, late]).toEqual([[], false]);
    }
  });

  test('have the ledgers of the request, which are known at once or looked up after the answer', async () => {
    const carriedOut = await answered(...master, { request: { uuid: masterId } }, null);
    expect([carriedOut.records[0]?.ledgerId, carriedOut.late]).toEqual([ledgerId, false]);
    const refused = await answered(...master, { request: { uuid: masterId } }, 'not_found');
    expect([refused.records[0]?.ledgerId, refused.late]).toEqual([ledgerId, true]);
    const elsewhere = await answered(...ledger, { request: { ledgerId } }, 'not_found');
    expect([elsewhere.records[0]?.ledgerId, elsewhere.late]).toEqual([ledgerId, false]);
    expect(await ledgersOf(...ledger, { request: { ledgerId: 'x' } }, 'invalid_argument')).toEqual([]);
  });

  test('are of the answer in place of a slow handler, and not of the handler’s own late answer', async () => {
    const request = { uuid: masterId };
    const { records } = await answered(...master, { inPlace: true, request }, 'outcome_unknown');
    expect(records).toMatchObject([{ responseStatus: 504, ledgerId }]);
    expect(await ledgersOf(...master, { inPlace: true, request }, null)).toEqual([]);
  });

  test('have what can be read of a request that was refused before it was decoded', async () => {
    const limited = await answered(...ledger, { readable: { ledgerId } }, 'invalid_argument');
    expect([limited.records[0]?.ledgerId, limited.late, limited.waits]).toEqual([ledgerId, true, undefined]);
    const create = ['MasterService/CreateMaster', '/v1/traceledger/master'] as const;
    expect(await ledgersOf(...create, { readable: { ledgerId } }, 'invalid_json')).toEqual([ledgerId]);
    expect(await ledgersOf(...create, { readable: { ledgerId: '..' } }, 'invalid_json')).toEqual([]);
    expect(await ledgersOf(...create, {}, 'invalid_json')).toEqual([]);
    expect(await ledgersOf(...master, { readable: { uuid: masterId } }, 'payload_too_large')).toEqual([ledgerId]);
    expect(await ledgersOf(...master, { readable: { uuid: 'none' } }, 'invalid_json')).toEqual([]);
  });

  test('have a path that is cut if it is longer than any of the API', async () => {
    const { records } = await answered(master[0], `/v1/${'x'.repeat(9000)}`, { named: [ledgerId] }, 'not_found');
    expect(records[0]?.path).toHaveLength(accessPathMaxChars);
    expect(records[0]?.path).toMatch(/^\/v1\/x+…$/);
    const longest = `/v1/${'x'.repeat(accessPathMaxChars - 4)}`;
    const whole = await answered(master[0], longest, { named: [ledgerId] }, 'not_found');
    expect(whole.records[0]?.path).toBe(longest);
  });

  test('keep nothing of the request while they wait', async () => {
    const sizeBytes = 1024 * 1024;
    const before = await heldBytes();
    const held: AccessRecord[] = [];
    for (let at = 0; at < 50; at += 1) {
      // As a body is read: its texts are pieces of the whole.
      const body = Buffer.from(`{"ledger_id":"${ledgerId}","name":"${'x'.repeat(sizeBytes)}${at}"}`).toString();
      const url = Buffer.from(`/v1/ledgers/${'y'.repeat(sizeBytes)}${at}`).toString();
      const request = { ledgerId: body.slice(14, 50) };
      for (const code of ['not_found', null] as const)
        held.push(...(await answered('MasterService/CreateMaster', url.slice(0, -1), { request }, code)).records);
    }
    expect(held.map((record) => record.ledgerId)).toEqual(held.map(() => ledgerId));
    expect(((await heldBytes()) - before) / held.length).toBeLessThan(64 * 1024);
  });

  test('are made for calls beyond their rate, but not for a flood of them', async () => {
    expect(await ledgersOf(...ledger, { readable: { ledgerId } }, 'rate_limited')).toEqual([ledgerId]);
    const flood = await answered(...ledger, { recorded: false, readable: { ledgerId } }, 'rate_limited');
    expect([flood.records, flood.late]).toEqual([[], false]);
  });
});

describe('an entity that must sign', () => {
  const unread = { readable: { uuid: masterId } };
  const read = { request: { uuid: masterId } };
  const named = { named: [ledgerId] };
  const creation = ['MasterService/CreateMaster', '/v1/traceledger/master'] as const;

  const refusals: ErrorCode[] = [
    ...(['payload_too_large', 'invalid_argument', 'rate_limited', 'not_found', 'permission_denied'] as const),
    ...(['master_closed', 'idempotency_key_reused', 'unavailable', 'outcome_unknown'] as const),
  ];
  test.each(refusals)('has a refusal with %s in its history if its signature was verified before', async (code) => {
    for (const call of [unread, read, named, { ...read, inPlace: true }]) {
      const over = { caller: entity, ...call };
      expect(await ledgersOf(...master, { ...over, verified: true }, code)).toEqual([ledgerId]);
      const { records, late } = await answered(...master, over, code);
      expect([records, late]).toEqual([[], false]);
    }
    const other = { caller: entity, request: { ledgerId }, inPlace: true };
    expect(await ledgersOf(...creation, other, code)).toEqual([]);
    expect(await ledgersOf(...creation, { ...other, verified: true }, code)).toEqual([ledgerId]);
  });

  test.each<ErrorCode>(['signature_required', 'invalid_signature', 'signing_key_revoked'])(
    'has no refusal with %s in its history',
    async (code) => {
      for (const call of [unread, read, named]) {
        for (const verified of [true, false])
          expect(await ledgersOf(...master, { caller: entity, ...call, verified }, code)).toEqual([]);
      }
    },
  );
});
