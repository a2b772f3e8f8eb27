import { createHash, createPublicKey, sign, verify } from 'node:crypto';
import { canonicalize } from 'json-canonicalize';
import { describe, expect, test } from 'vitest';
import { entityRequestsTable } from '../../../docs/signing-examples.ts';
import type { Event, JsonObject } from '../../../src/client/index.ts';
import { createFacts } from '../../../src/client/signing/facts.ts';
import { eventSigningInput } from '../../../src/client/signing/signed-calls.ts';
import { Auth } from '../../../src/gen/svc/v1/options_pb.ts';
import { rpcPathOf } from '../../../src/rpc/endpoints/endpoint.ts';
import { methodRule, restRoutes } from '../../../src/rpc/endpoints/routes.ts';
import { headerParameters } from '../../../src/rpc/openapi/headers.ts';
import { apiMethods, methodNamed } from '../../support/access-transports.ts';
import { privateKeyOf } from '../../support/log-keys.ts';
import {
  quoted,
  sectionOf,
  signedCallRow,
  signedCallRows,
  signingPage,
  tableRows,
} from '../../support/signing-page.ts';
import { at } from '../../support/vector-chain.ts';

const plain = (text: string) => text.replaceAll('`', '');
const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');

const [actors, ledgers, masters] = sectionOf(signingPage, 'The actors and ledgers of the examples')
  .split(/\n\n(?=\|)/)
  .slice(1)
  .map((table) => tableRows(table).map((row) => row.map(plain)));

function actorNamed(name: string) {
  const [, id = '', seed = '', publicKey = ''] = actors?.find(([one]) => one === name) ?? [];
  return { id, seed, publicKey };
}

/** The lines of each example, by name. */
const examples = sectionOf(signingPage, 'Worked examples')
  .split('\n### ')
  .slice(1)
  .map((text) => {
    const [, title = '', method = '', by = '', lines = ''] =
      /^(.+)\n\n`([\w.]+)`, signed by the (\w+)\n\n```text\n([\s\S]*?)```/.exec(text) ?? [];
    const values = new Map(
      [...lines.matchAll(/^([\w -]+):\s+(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
    );
    const value = (name: string): string => {
      const found = values.get(name);
      if (found === undefined) throw new Error(`${title} has no ${name}`);
      return found;
    };
    return { title, method, by, has: (name: string) => values.has(name), value };
  });
const titled = examples.map((example) => [example.title, example] as const);

/** The public key of 32 bytes (RFC 8410 SPKI). */
const publicKeyOf = (base64: string) =>
  createPublicKey({
    key: Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from(base64, 'base64')]),
    format: 'der',
    type: 'spki',
  });

describe('the worked examples of docs/signing.md', () => {
  test.each(titled)('%s: canonical JSON, digest and signature are recomputed from the page', (_, example) => {
    const { id, seed, publicKey } = actorNamed(example.by);
    const canonical = example.value('Canonical JSON');
    expect(canonicalize(JSON.parse(canonical))).toBe(canonical);
    const message = `${example.value('Event type')}\0${example.value('Ledger id')}\0${canonical}`;
    expect(example.value('SHA-256')).toBe(sha256(message));
    const digest = Buffer.from(example.value('SHA-256'), 'hex');
    const signature = example.value('X-Actor-Sig');
    expect(signature).toBe(sign(null, digest, privateKeyOf(seed)).toString('base64'));
    expect(verify(null, digest, publicKeyOf(publicKey), Buffer.from(signature, 'base64'))).toBe(true);
    expect(example.value('X-Signing-Key-ID')).toBe(`svc:actor:${id}#key-1`);
  });

  const genesisOf = new Map(ledgers?.map(([id = '', genesis = '']) => [id, JSON.parse(genesis) as JsonObject]));
  const ledgerWhere = (name: string, value: string) =>
    [...genesisOf].find(([, genesis]) => genesis[name] === value && genesis.ledger_type !== 'ORDER')?.[0] ?? '';
  const factsOf = (caller: string) =>
    createFacts({
      genesis: async (id): Promise<Event> => ({ ...at(0), ledgerId: id, payload: genesisOf.get(id) ?? {} }),
      master: async (id) => {
        const [masterId = '', ledgerId = '', businessRef = '', scope = ''] = masters?.find(([one]) => one === id) ?? [];
        return { masterId, ledgerId, businessRef, scope };
      },
      organizationLedger: async (id) => ledgerWhere('organization_id', id),
      rootLedger: async (id) => ledgerWhere('counterparty_actor_id', id),
      caller: async () => caller,
    });
  const ofEvents = titled.filter(([, example]) => example.value('Event type') !== 'ENTITY_REQUEST');

  test.each(ofEvents)('%s: the typed client signs the same', async (_, example) => {
    const { method } = example;
    const body = example.has('Body') ? (JSON.parse(example.value('Body')) as Record<string, unknown>) : {};
    const fields = Object.entries({ ...pathFields(method, example.value('Call')), ...body });
    const request = Object.fromEntries(fields.map(([name, value]) => [camelCase(name), value]));
    if (typeof request.payload === 'string') request.payload = JSON.parse(request.payload);
    const name = methodNamed(method).localName.replace('appendEvents', 'appendEvent');
    expect(await eventSigningInput(name, request, factsOf(actorNamed(example.by).id))).toEqual({
      eventType: example.value('Event type'),
      ledgerId: example.value('Ledger id'),
      canonical: example.value('Canonical JSON'),
    });
  });

  test.each(ofEvents)('%s: the keys are those of the table', (_, example) => {
    const ledgerType = String(genesisOf.get(example.value('Ledger id'))?.ledger_type);
    const row = signedCallRow(example.method, ledgerType);
    expect(row).toMatchObject({ eventType: row?.eventType === null ? null : example.value('Event type') });
    const keys = Object.keys(JSON.parse(example.value('Canonical JSON')) as object);
    const missing = row?.keys?.filter((key) => !keys.includes(key)) ?? [];
    expect(keys.filter((key) => row?.keys?.includes(key) === false)).toEqual([]);
    // The buyer of the examples has no organization.
    expect(missing.filter((key) => key !== 'buyer_organization_id')).toEqual([]);
  });

  const ofRequests = titled.filter(([, example]) => example.value('Event type') === 'ENTITY_REQUEST');

  test.each(ofRequests)('%s: the request that is signed is the one that is shown', (_, example) => {
    const body = example.has('Body') ? example.value('Body') : '';
    const [method, path] = example.value('Call').split(' ');
    const bytes = body.startsWith('0x') ? Buffer.from(body.slice(2), 'hex') : body;
    expect(JSON.parse(example.value('Canonical JSON'))).toEqual({
      method,
      path,
      body_hash: sha256(bytes),
      timestamp: example.value('X-Timestamp'),
    });
    expect(example.value('Ledger id')).toBe(example.value('X-ACTOR-ID'));
    expect(example.value('X-ACTOR-ID')).toBe(actorNamed(example.by).id);
  });

  test('show every method of the table, and ENTITY_REQUEST with and without a body and over gRPC', () => {
    const shown = new Set(examples.map(({ method }) => method));
    expect(signedCallRows.filter(({ method }) => !shown.has(method))).toEqual([]);
    expect(ofRequests.map(([, example]) => [example.has('Body'), example.value('Call').split(' ')[0]])).toEqual([
      [false, 'GET'],
      [true, 'PATCH'],
      [true, 'POST'],
    ]);
  });
});

function pathFields(method: string, call: string): Readonly<Record<string, string>> {
  const route = restRoutes().find((candidate) => !candidate.alias && candidate.method === methodNamed(method));
  const pattern = route?.template.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/?]+)') ?? '$^';
  return new RegExp(`${pattern}$`).exec(call)?.groups ?? {};
}

const camelCase = (name: string) => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

describe('the table of signed calls', () => {
  test('has every method whose rule says that it is signed, and says so', () => {
    const signed = [...apiMethods].filter(([, method]) => methodRule(method).signed).map(([name]) => name);
    const required = signedCallRows.filter((row) => row.required).map(({ method }) => method);
    expect(new Set(required)).toEqual(new Set(signed));
  });

  test('says which calls an entity signs as events', () => {
    for (const row of signedCallRows) {
      const { auth, signed } = methodRule(methodNamed(row.method));
      expect([row.method, row.byEntity]).toEqual([row.method, signed && auth === Auth.BEARER_OR_ENTITY]);
    }
  });

  test('names the routes of the descriptors', () => {
    for (const { call, method } of signedCallRows.filter((row) => !row.call.startsWith('the same'))) {
      const route = restRoutes().find((candidate) => candidate.method === methodNamed(method));
      expect(call.startsWith(route === undefined ? 'gRPC only' : `\`${route.httpMethod} ${route.template}\``)).toBe(
        true,
      );
    }
  });

  test('lists for each method all four ledger types, or none', () => {
    for (const method of new Set(signedCallRows.map((row) => row.method))) {
      const types = signedCallRows.filter((row) => row.method === method).flatMap((row) => row.ledgerTypes);
      expect([method, types.length]).toEqual([method, types.length === 0 ? 0 : 4]);
    }
  });
});

test('the calls of ENTITY_REQUEST are those that entities make and do not sign as events', () => {
  const listed = tableRows(entityRequestsTable()).map(([, method = '']) => plain(method));
  const signed = new Set(signedCallRows.filter(({ byEntity }) => byEntity).map(({ method }) => method));
  const byEntities = [...apiMethods].filter(([name, method]) => {
    const { auth } = methodRule(method);
    return (auth === Auth.ENTITY || auth === Auth.BEARER_OR_ENTITY) && !signed.has(name);
  });
  expect(listed).toEqual(byEntities.map(([, method]) => rpcPathOf(method)));
  expect(signingPage).toContain(entityRequestsTable());
});

test('every header of signed calls is in the table of headers', () => {
  const listed = tableRows(sectionOf(signingPage, 'Headers')).flatMap(([header = '']) => quoted(header));
  const documented = Object.values(headerParameters) as readonly { readonly name: string }[];
  const others = ['X-Request-Id', 'X-Strict', 'Idempotency-Key', 'If-None-Match', 'Last-Event-ID'];
  const expected = [...documented.map(({ name }) => name).filter((name) => !others.includes(name)), 'X-ACTOR-ID'];
  expect(listed.toSorted()).toEqual(expected.toSorted());
});

describe('the traps of canonical JSON', () => {
  const traps = new Map(
    [...signingPage.matchAll(/<!-- trap: (.+) -->\n```json\n(.+)\n```/g)].map(([, name = '', text = '']) => [
      name,
      text,
    ]),
  );
  const input = traps.get('input') ?? '';

  test('the canonical form is that of the input', () => {
    expect(traps.get('canonical')).toBe(canonicalize(JSON.parse(input)));
  });

  test.each(['Go json.Marshal', 'Python json.dumps'])('what %s writes is the same value in another form', (name) => {
    const text = traps.get(name) ?? '';
    expect(JSON.parse(text)).toEqual(JSON.parse(input));
    expect(text).not.toBe(traps.get('canonical'));
  });
});
