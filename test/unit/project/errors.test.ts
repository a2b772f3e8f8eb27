import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { errorCodes, LedgerError, retryRuleOf } from '../../../src/domain/errors.ts';
import { HealthService } from '../../../src/gen/svc/v1/health_pb.ts';
import { callGrpc, grpcClient } from '../../support/grpc-client.ts';
import { startListeningNode } from '../../support/listening-node.ts';
import { quoted, sectionOf, tableRows } from '../../support/signing-page.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/errors.md'), 'utf8');
const rows = new Map(tableRows(sectionOf(page, 'The codes')).map(([code = '', ...cells]) => [quoted(code)[0], cells]));

let code = errorCodes[0] ?? 'internal';
const node = await startListeningNode({
  handlers: {
    'HealthService.GetHealth': () => {
      throw new LedgerError(code, 'So it is.');
    },
  },
});
const client = grpcClient(node.grpcAddress);
afterAll(async () => {
  client.close();
  await node[Symbol.asyncDispose]();
});

test('docs/errors.md lists every code once, in the order of the table in the code', () => {
  expect([...rows.keys()]).toEqual([...errorCodes]);
  expect(tableRows(sectionOf(page, 'The codes'))).toHaveLength(errorCodes.length);
});

describe('the statuses of docs/errors.md are those that a caller gets', () => {
  test.each(errorCodes)('%s', async (one) => {
    code = one;
    const [http, grpc, connect = ''] = rows.get(one) ?? [];
    const rest = await fetch(`${node.base}/v1/health`);
    expect([String(rest.status), (await rest.json()) as unknown]).toMatchObject([http, { error: { code: one } }]);
    const { error, info } = await callGrpc(client, HealthService.method.getHealth, {});
    expect([grpc?.endsWith(`(${error?.code})`), info?.reason]).toEqual([true, one]);
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${node.base}/svc.v1.HealthService/GetHealth`, { method: 'POST', headers, body: '{}' });
    const body = (await answer.json()) as { readonly code: string };
    expect(`\`${body.code}\`, ${answer.status}`).toBe(connect);
    expect(grpc?.split(' ')[0]).toBe(body.code.toUpperCase());
  });
});

test('what may be sent again is what the rules of the codes say', () => {
  const said = errorCodes.map((one) => [one, rows.get(one)?.at(-1)?.split(/[,;]/)[0]]);
  const meant = { refused: 'no', refused_unchecked: 'no', not_written: 'yes', in_progress: 'yes' } as const;
  expect(said).toEqual(
    errorCodes.map((one) => {
      const rule = retryRuleOf(one);
      return [one, rule === 'maybe_written' || rule === 'fault' ? 'with the same Idempotency-Key' : meant[rule]];
    }),
  );
});

test('every answer to "send it again?" is explained', () => {
  const explained = tableRows(sectionOf(page, 'Whether to send a call again')).map(([answer = '']) => answer);
  const parts = explained.map((answer) => answer.replace(/^… /, ''));
  const given = new Set([...rows.values()].map((cells) => cells.at(-1) ?? ''));
  expect([...given].filter((answer) => !parts.some((part) => answer === part || answer.endsWith(part)))).toEqual([]);
});
