import { afterAll, describe, expect, test } from 'vitest';
import { apiMethods } from '../support/access-transports.ts';
import { grpcClient } from '../support/grpc-client.ts';
import {
  absenceCases,
  type InputCase,
  orderCases,
  requestFields,
  tableCases,
  typeCases,
  unknownFieldCases,
} from '../support/input-cases.ts';
import { headerCases, namingCases } from '../support/input-rules.ts';
import { signatureCases } from '../support/input-signatures.ts';
import { fieldsWithoutRule, inputTable } from '../support/input-table.ts';
import { inputTransports } from '../support/input-transports.ts';
import { type GoodCall, newInputWorld, shownOf } from '../support/input-world.ts';
import { jsonOf } from '../support/json-text.ts';
import { isNightly } from '../support/nightly.ts';
import { nodeForTests } from '../support/node-for-tests.ts';
import { rest } from '../support/parties-rest.ts';

const node = await nodeForTests();
const grpc = grpcClient(node.grpcAddress);
afterAll(() => grpc.close());
const transports = inputTransports(node.base, grpc);
const input = await newInputWorld(node.base);

test('the tables list every field of every request', () => {
  const listed = [inputTable, fieldsWithoutRule].flatMap((table) =>
    Object.entries(table).flatMap(([method, fields]) => Object.keys(fields).map((field) => `${method} ${field}`)),
  );
  const fields = requestFields().map(({ method, field }) => `${method} ${field.name}`);
  expect(listed.toSorted()).toEqual(fields.toSorted());
});

function goodCall(method: string): GoodCall {
  const good = input.good.get(method);
  if (good === undefined) throw new Error(`${method} has no good call`);
  return good;
}

/** What a case came to at a transport, if not what it should. undefined: it does not reach the transport. */
async function fault(one: InputCase, at: string): Promise<string | null | undefined> {
  const good = goodCall(one.method);
  const answer = await transports.get(at)?.({
    method: one.method,
    fields: { ...(one.of ?? good.fields), ...one.change },
    changed: Object.keys(one.change),
    headers: one.by ?? { ...good.headers, ...one.headers },
  });
  if (answer === null || answer === undefined) return undefined;
  reached.add(one);
  return answer === one.expected ? null : `${at}: ${shown(one)} is ${answer}, not ${one.expected}`;
}

/** In the ordinary run a case goes to one of the transports that it reaches, the next case to the next transport. */
const transportsMax = isNightly ? transports.size : 1;

async function faultsOf(one: InputCase, turn: number): Promise<string[]> {
  const names = [...transports.keys()];
  const order = one.at ?? names.map((_, n) => names[(turn * transportsMax + n) % names.length] ?? '');
  const faults: string[] = [];
  let count = 0;
  for (const at of order) {
    if (one.at === undefined && count === transportsMax) break;
    const found = await fault(one, at);
    if (found !== undefined) count += 1;
    if (typeof found === 'string') faults.push(found);
  }
  return faults;
}

/** Cases of a method that are under way together. */
const atOnce = 8;

const reached = new Set<InputCase>();
const shown = ({ change, headers, by }: InputCase) => `${jsonOf(change)} ${jsonOf(headers ?? by ?? {})}`.slice(0, 200);

/** In the ordinary run one value of each field: the order is that of fields. */
function ordered(all: readonly InputCase[]): readonly InputCase[] {
  const fieldOf = ({ method, change }: InputCase) => `${method} ${Object.keys(change)}`;
  return isNightly ? all : [...Map.groupBy(all, fieldOf).values()].flatMap((ofField) => ofField.slice(0, 1));
}

const cases: Readonly<Record<string, readonly InputCase[]>> = {
  'invalid values': tableCases(),
  'missing fields': absenceCases(),
  'values of another type': typeCases(),
  'unknown fields': unknownFieldCases(),
  'named objects': namingCases(input.world),
  'order of checks': ordered(orderCases((method) => goodCall(method).fields)),
  headers: headerCases(input.world),
  'invalid signatures': signatureCases(input.keyed),
};

describe('every transport refuses with the same code', async () => {
  const before = await shownOf(input);

  describe.each(Object.entries(cases))('%s', (_name, these) => {
    const methods = [...apiMethods.keys()].filter((method) => these.some((one) => one.method === method));
    test.each(methods)('%s', async (method) => {
      const faults: string[] = [];
      let turn = 0;
      const left = these.filter((one) => one.method === method);
      for (let some = left.splice(0, atOnce); some.length > 0; some = left.splice(0, atOnce)) {
        faults.push(...(await Promise.all(some.map((one) => faultsOf(one, turn++)))).flat());
        for (const one of some)
          if (one.at === undefined && !reached.has(one)) faults.push(`${shown(one)} reaches no transport`);
      }
      expect(faults).toEqual([]);
    });
  });

  test('no refused call has written anything', async () => {
    expect(await shownOf(input)).toEqual(before);
  });

  test('the service is healthy after the refused calls', async () => {
    expect((await rest(node.base, 'GET', '/health')).body).toMatchObject({ status: 'ok' });
  });

  test.each(
    Object.entries(fieldsWithoutRule).flatMap(([method, fields]) =>
      Object.entries(fields).flatMap(([field, values]) => values.map((value) => [method, field, value] as const)),
    ),
  )('%s accepts any %s: %.20j', async (method, field, value) => {
    const { fields, headers } = goodCall(method);
    const sent = { method, fields: { ...fields, [field]: value }, changed: [field], headers };
    const answers = await Promise.all([...transports.values()].map((transport) => transport(sent)));
    expect(new Set(answers)).toEqual(new Set(['ok', null]));
  });

  // What streams for long is not run for this.
  const calls = [...apiMethods.keys()].filter((method) => method !== 'SandboxService.RunSandbox');
  test.each(calls)('%s succeeds with good fields', async (method) => {
    const { fields, headers } = goodCall(method);
    const transport = transports.get(method === 'MasterService.AppendEvents' ? 'AppendEvents' : 'REST');
    expect(await transport?.({ method, fields, changed: [], headers })).toBe('ok');
  });
});
