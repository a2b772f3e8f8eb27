import { describe, expect, test } from 'vitest';
import { type ErrorCode, LedgerError } from '../../src/domain/errors.ts';
import { createLog } from '../../src/log.ts';
import { createMetrics } from '../../src/metrics.ts';
import { createAnswerLog } from '../../src/rpc/answer-log.ts';
import { endpointsOf } from '../../src/rpc/endpoint.ts';
import type { Exchange } from '../../src/rpc/exchange.ts';
import { apiServices } from '../../src/rpc/routes.ts';
import { RunningCall } from '../../src/rpc/running-call.ts';
import type { AccessRecord } from '../../src/service/access-record.ts';
import type { Caller } from '../../src/service/call.ts';

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
const endpoints = endpointsOf(
  apiServices.map((service) => ({
    service,
    handlers: new Map(service.methods.map((method) => [method.localName, handler])),
  })),
);

/** A call of a method as it stands when it is answered, and the records that its answer leaves. */
function answered(
  method: string,
  path: string,
  over: {
    readonly caller?: Caller | null;
    readonly named?: readonly (string | null)[];
    readonly query?: string;
    readonly inPlace?: boolean;
    readonly replayed?: boolean;
    readonly recorded?: boolean;
  },
  code: ErrorCode | null,
  room?: Promise<void>,
): { readonly records: AccessRecord[]; readonly waits: Promise<void> | undefined } {
  const endpoint = endpoints.get(`/svc.v1.${method}`);
  if (endpoint === undefined) throw new Error(`No method ${method}`);
  const records: AccessRecord[] = [];
  const answers = createAnswerLog({
    log: createLog('silent', { write: () => {} }),
    metrics: createMetrics(),
    history: (record) => {
      records.push(record);
      return room;
    },
    monotonicMs: () => 0,
    now: () => 1000,
  });
  const entropy = { newId: () => 'id', randomBytes: (length: number) => Buffer.alloc(length) };
  const call = new RunningCall(endpoint, 'rest', 'request', 0, 10_000, 0, entropy);
  call.caller = over.caller === undefined ? caller : over.caller;
  call.answered = over.inPlace === true;
  if (over.replayed === true) call.markReplayed();
  call.isRecorded = over.recorded ?? true;
  for (const name of over.named ?? []) call.named(name);
  const equivalent = () => ({ verb: 'GET', path, query: over.query ?? '' });
  const exchange = { equivalent } as unknown as Exchange;
  const waits =
    code === null
      ? answers.succeeded(call, exchange, null)
      : answers.failed(call, exchange, null, new LedgerError(code, 'refused'));
  return { records, waits };
}

const master = ['MasterService/AppendEvent', `/v1/traceledger/master/${masterId}/events`] as const;
const ledger = ['LedgerService/ListLedgerEvents', `/v1/ledgers/${ledgerId}/events`] as const;
const ledgersOf = ({ records }: { readonly records: readonly AccessRecord[] }) => records.map((one) => one.ledgerId);

describe('what an answer leaves in its caller’s history', () => {
  test('one record for each ledger named, and its answer waits where the history says so', () => {
    const room = Promise.resolve();
    const both = answered(...master, { named: [ledgerId, otherLedgerId, ledgerId] }, null, room);
    expect(ledgersOf(both)).toEqual([ledgerId, otherLedgerId]);
    expect(both.waits).toBe(room);
    const { records, waits } = answered(...master, { named: [null] }, 'not_found');
    expect(waits).toBeUndefined();
    expect(records).toEqual([
      {
        actorId: caller.actorId,
        apiKeyId: 'key',
        ledgerId: null,
        method: 'GET',
        path: master[1],
        responseStatus: 404,
        at: 1000,
        requestId: 'request',
      },
    ]);
  });

  test('nothing without a caller, and nothing of a call that named nothing', () => {
    expect(answered(...ledger, { caller: null, named: [ledgerId] }, 'unauthenticated').records).toEqual([]);
    expect(answered('DeveloperService/GetDeveloper', '/v1/developer/me', {}, null).records).toEqual([]);
    expect(answered('LedgerService/ListLedgers', '/v1/ledgers', {}, 'invalid_argument').records).toEqual([]);
    expect(answered('WebhookService/DeleteWebhook', `/v1/webhooks/${masterId}`, {}, 'not_found').records).toEqual([]);
  });

  test('an answer given in place of a slow handler counts, and not the handler’s own that comes too late', () => {
    const inPlace = answered(...master, { inPlace: true }, 'outcome_unknown');
    expect(inPlace.records).toMatchObject([{ responseStatus: 504, ledgerId: null }]);
    expect(answered(...master, { inPlace: true, named: [ledgerId] }, null).records).toEqual([]);
  });

  test('what was refused unread is told by its path and query', () => {
    expect(ledgersOf(answered(...ledger, {}, 'invalid_argument'))).toEqual([ledgerId]);
    const list = ['MasterService/ListMasters', '/v1/traceledger/master'] as const;
    expect(ledgersOf(answered(...list, { query: `?a=b&ledger_id=${ledgerId}` }, 'invalid_argument'))).toEqual([
      ledgerId,
    ]);
    expect(ledgersOf(answered(...list, { query: '?ledger_id=..' }, 'invalid_argument'))).toEqual([]);
    expect(ledgersOf(answered(...list, {}, 'invalid_argument'))).toEqual([]);
    expect(ledgersOf(answered(...master, {}, 'payload_too_large'))).toEqual([null]);
    expect(ledgersOf(answered(master[0], '/v1/traceledger/master/none/events', {}, 'invalid_json'))).toEqual([]);
    expect(ledgersOf(answered('MasterService/CreateMaster', '/v1/traceledger/master', {}, 'invalid_json'))).toEqual([]);
  });

  test('a call beyond its rate leaves its record like any other, unless it was one of a flood', () => {
    expect(ledgersOf(answered(...ledger, {}, 'rate_limited'))).toEqual([ledgerId]);
    expect(answered(...ledger, { recorded: false }, 'rate_limited').records).toEqual([]);
  });

  test('a stored answer that is given again leaves its own record', () => {
    const enrich = ['OrganizationService/EnrichOrganization', `/v1/organizations/${masterId}/enrich`] as const;
    expect(ledgersOf(answered(...enrich, { replayed: true }, null))).toEqual([null]);
    expect(ledgersOf(answered(...enrich, {}, 'idempotency_key_reused'))).toEqual([null]);
  });
});

describe('an entity that must sign', () => {
  test.each<[ErrorCode, boolean]>([
    ['signature_required', false],
    ['invalid_signature', false],
    ['not_found', false],
    ['invalid_argument', false],
    ['access_expired', false],
    ['permission_denied', true],
    ['master_closed', true],
    ['idempotency_key_reused', true],
    ['outcome_unknown', true],
  ])('refused a signed call with %s: in its history %s', (code, isKept) => {
    expect(answered(...master, { caller: entity, named: [ledgerId] }, code).records).toHaveLength(isKept ? 1 : 0);
  });

  test('whose request was verified as a whole has every refusal in it but that of the signature', () => {
    expect(answered(...ledger, { caller: entity, named: [ledgerId] }, 'not_found').records).toHaveLength(1);
    expect(answered(...ledger, { caller: entity, named: [ledgerId] }, 'invalid_signature').records).toEqual([]);
    // Nothing was verified yet.
    expect(answered(...ledger, { caller: entity }, 'payload_too_large').records).toEqual([]);
  });
});
