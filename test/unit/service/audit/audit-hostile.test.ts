import { randomBytes } from 'node:crypto';
import { create, type DescField, type DescMethod, ScalarType, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { rpcPathOf } from '../../../../src/rpc/endpoints/endpoint.ts';
import { apiServices, type RestRoute, restRoutes } from '../../../../src/rpc/endpoints/routes.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import { AccessQueue } from '../../../../src/service/audit/access-history.ts';
import { accessPathMaxChars } from '../../../../src/service/audit/access-record.ts';
import { LedgerNaming } from '../../../../src/service/audit/ledger-naming.ts';
import {
  entityNames,
  namesByFields,
  organizationNames,
  webhookNames,
} from '../../../../src/service/audit/named-ledgers.ts';
import type { LedgerReading } from '../../../../src/service/reading/ledger-reading.ts';
import { ManualClock } from '../../../support/clock.ts';
import { callGrpc, grpcClient } from '../../../support/grpc-client.ts';
import {
  actorId,
  bearer,
  type FakeHandler,
  keyedEntityId,
  ledgerId,
  masterId,
  startListeningNode,
} from '../../../support/listening-node.ts';
import { MemoryAccessLog } from '../../../support/memory-store/access-log.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';

/** The same calls go to a node with an access history and to one without: both must answer alike, whatever is sent. */

const nowMs = Date.UTC(2026, 10, 21);
const unavailable = new LedgerError('unavailable', 'The store is away.');

/** A store that knows one master, and is unavailable for ids that end in a letter. */
const lookUp = async (id: string) => {
  if (/[a-f]$/.test(id)) throw unavailable;
  return id === masterId ? { ledgerId } : null;
};
const reading = {
  knownMaster: () => null,
  masterFacts: lookUp,
  ledgerFacts: lookUp,
  readableMaster: async () => {
    throw new LedgerError('access_expired', 'The grant has run out.');
  },
} as unknown as LedgerReading;
const naming = new LedgerNaming(reading, new MemoryRecordStore());
const otherNames: Readonly<Record<string, object>> = {
  OrganizationService: organizationNames(naming),
  EntityService: entityNames(),
  WebhookService: webhookNames(naming),
};
const names: Readonly<Record<string, object>> = Object.fromEntries(
  apiServices.map((service) => [service.name, { ...namesByFields(naming, service), ...otherNames[service.name] }]),
);

/** The methods whose calls may be recorded. */
const routes = restRoutes().filter(
  ({ method }) =>
    method.methodKind === 'unary' &&
    (method.input.fields.some(({ name }) => name === 'ledger_id') ||
      Object.hasOwn(names[method.parent.name] ?? {}, method.localName)),
);

/** Answers or refuses, depending on the request alone. */
const answering: FakeHandler = async (request: object) => {
  const size = Object.values(request).join('').length % 5;
  if (size === 1) throw new LedgerError('not_found', 'There is no such thing.');
  if (size === 2) throw new LedgerError('permission_denied', 'This caller may not.');
  if (size === 3) throw new Error('broken');
  return {};
};
const handlers = Object.fromEntries(
  routes.map(({ method }) => [`${method.parent.name}.${method.name}`, answering] as const),
);

const log = new MemoryAccessLog();
const reports: unknown[] = [];
const report = {
  failing: (error: unknown) => void reports.push(error),
  recovered: () => {},
  lost: (_records: number, cause: unknown) => void reports.push(cause),
};
const memory = new MemoryBudget(1024 * 1024 * 1024);
const queue = new AccessQueue({ log, memory, clock: new ManualClock(nowMs), random: randomBytes, report });
const options = { handlers, names, now: () => nowMs };
const nodes = [
  await startListeningNode({ ...options, history: (entry, actor) => queue.note(entry, actor) }),
  await startListeningNode({ ...options, history: null }),
] as const;
const clients = [grpcClient(nodes[0].grpcAddress), grpcClient(nodes[1].grpcAddress)] as const;

const unhandled: unknown[] = [];
const note = (cause: unknown) => void unhandled.push(cause);
process.on('unhandledRejection', note);
afterAll(async () => {
  process.off('unhandledRejection', note);
  for (const client of clients) client.close();
  await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
});

const entity = { 'x-actor-id': keyedEntityId, 'x-actor-type': 'device' };
const signed = { ...entity, 'x-actor-sig': 'good-signature', 'x-timestamp': new Date(nowMs).toISOString() };
const callers = fc.constantFrom<Readonly<Record<string, string>>>(bearer, bearer, bearer, bearer, signed, entity, {});
const headers = fc
  .tuple(callers, fc.constantFrom('', '', 'key', 'x'.repeat(300)))
  .map(([caller, key]) => ({ ...caller, ...(key === '' ? {} : { 'idempotency-key': key }), 'x-request-id': 'r' }));

/** Ids that exist and that do not, lone surrogates, and other texts. */
const texts = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(ledgerId, masterId, actorId, masterId.replace(/.$/, 'a')) },
  { weight: 2, arbitrary: fc.constantFrom('', '..', '%', '\ud800', 'a\udc00b') },
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: fc.constantFrom('\ud800', 'é', '/', '"', '\\', '\0'), minLength: 400, maxLength: 600 }),
);
const values = fc.oneof({ weight: 4, arbitrary: texts }, fc.jsonValue({ maxDepth: 2 }));

/** Changes of a body: none, its end cut off, bytes added, a byte replaced. */
const breaks = fc.oneof(
  { weight: 5, arbitrary: fc.constant((bytes: Buffer) => bytes) },
  fc.nat(40).map((cut) => (bytes: Buffer) => bytes.subarray(0, -1 - cut)),
  fc.uint8Array({ maxLength: 8 }).map((more) => (bytes: Buffer) => Buffer.concat([bytes, more])),
  fc.tuple(fc.nat(99), fc.nat(255)).map(([at, byte]) => (bytes: Buffer) => {
    const changed = Buffer.from(bytes);
    if (changed.length > 0) changed[at % changed.length] = byte;
    return changed;
  }),
);

/** A JSON body: a method's fields by either of their names, some twice, and at times other members. */
function jsonBody({ input }: DescMethod): fc.Arbitrary<Buffer> {
  const member = (names: readonly string[]) => fc.tuple(fc.constantFrom(...names), values);
  const own = fc.tuple(...input.fields.map(({ name, jsonName }) => member([name, jsonName])));
  const others = fc.array(member(['x', ...input.fields.map(({ name }) => name)]), { maxLength: 1 });
  const object = fc.tuple(own, others).map(([first, second]) => {
    const written = [...first, ...second].map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
    return `{${written.join(',')}}`;
  });
  return fc
    .tuple(fc.oneof({ weight: 9, arbitrary: object }, fc.json()), breaks)
    .map(([text, broken]) => broken(Buffer.from(text)));
}

const isText = (field: DescField) => field.fieldKind === 'scalar' && field.scalar === ScalarType.STRING;

function binaryBody({ input }: DescMethod): fc.Arbitrary<Buffer> {
  const fields = Object.fromEntries(input.fields.filter(isText).map(({ localName }) => [localName, texts]));
  return fc
    .tuple(fc.record(fields, { requiredKeys: [] }), breaks)
    .map(([init, broken]) => broken(Buffer.from(toBinary(input, create(input, init)))));
}

function restPath(route: RestRoute): fc.Arbitrary<string> {
  const piece = fc.oneof(
    texts.map((text) => encodeURIComponent(text.toWellFormed()) || '-'),
    fc.constantFrom('%', '%ff', '%ED%A0%80', 'x'.repeat(2000)),
  );
  const query = fc
    .array(fc.tuple(fc.constantFrom('limit', ...route.method.input.fields.map(({ name }) => name)), piece), {
      maxLength: 3,
    })
    .map((pairs) => pairs.map(([name, value]) => `${name}=${value}`).join('&'));
  return fc
    .tuple(fc.array(piece, { minLength: route.pathParams.length, maxLength: route.pathParams.length }), query)
    .map(([pieces, tail]) => {
      let at = 0;
      const path = route.template.replaceAll(/\{[a-z0-9_]+\}/g, () => pieces[at++] ?? '');
      return tail === '' ? path : `${path}?${tail}`;
    });
}

type Sent = readonly [method: string, path: string, type: string, headers: Readonly<Record<string, string>>, Buffer];

async function overHttp(base: string, [method, path, type, more, body]: Sent): Promise<readonly unknown[]> {
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const init = hasBody ? { body: new Uint8Array(body) } : {};
  const response = await fetch(base + path, { method, headers: { ...more, 'content-type': type }, ...init });
  return [response.status, await response.text()];
}

type Call = readonly [method: DescMethod, headers: Readonly<Record<string, string>>, bytes: Buffer];

async function overGrpc(node: 0 | 1, [method, more, bytes]: Call): Promise<readonly unknown[]> {
  const { message, error, info } = await callGrpc(clients[node], method, bytes, more);
  return [message, error?.code, error?.details, info];
}

/** Makes each call at both nodes. Expects equal answers, more records, no lost record and no path beyond its bound. */
async function answeredAlike<T>(
  calls: fc.Arbitrary<T>,
  make: (node: 0 | 1, call: T) => Promise<unknown>,
): Promise<void> {
  const property = fc.asyncProperty(calls, async (call) => {
    expect(await make(0, call)).toEqual(await make(1, call));
  });
  const before = await kept();
  await fc.assert(property, { numRuns: 150 });
  const after = await kept();
  expect([queue.held, queue.lost, reports, unhandled]).toEqual([0, 0, [], []]);
  expect(after.length - before.length).toBeGreaterThan(5);
  const unfit = after.filter(({ path }) => path.length > accessPathMaxChars || !path.isWellFormed());
  expect(unfit).toEqual([]);
}

/** The histories of both callers. */
async function kept() {
  await queue.flush();
  const page = { ledgerId: null, since: 0, limit: 10_000, offset: 0, descending: false };
  return [...(await log.list(actorId, page)), ...(await log.list(keyedEntityId, page))];
}

const anyRoute = fc.constantFrom(...routes);

describe('with an access history a call is answered as without one', () => {
  test('over REST', () => {
    const json = fc.constant('application/json');
    const sent = anyRoute.chain((route) =>
      fc.tuple(fc.constant(route.httpMethod), restPath(route), json, headers, jsonBody(route.method)),
    );
    return answeredAlike(sent, (node, call) => overHttp(nodes[node].base, call));
  });

  test.each([
    ['JSON', 'application/json', jsonBody],
    ['bytes', 'application/proto', binaryBody],
  ] as const)('over Connect, in %s', (_name, type, bodyOf) => {
    const sent = anyRoute.chain(({ method }) =>
      fc.tuple(fc.constant('POST'), fc.constant(rpcPathOf(method)), fc.constant(type), headers, bodyOf(method)),
    );
    return answeredAlike(sent, (node, call) => overHttp(nodes[node].base, call));
  });

  test('over gRPC', () => {
    const sent = anyRoute.chain(({ method }) => fc.tuple(fc.constant(method), headers, binaryBody(method)));
    return answeredAlike(sent, overGrpc);
  });
});
