import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { standardSignature, svcSignature, webhookKeys } from '../../src/domain/keys/webhook-signature.ts';
import { newParty } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { runNode, suiteDir } from '../support/running-node.ts';
import { eventually } from '../support/webhook-receiver.ts';

const folder = suiteDir();

/** The command, run in this process. */
function listening(args: readonly string[]) {
  const heard = { stdout: '', stderr: '', code: 0 };
  const terminal = {
    env: {},
    now: Date.now,
    print: async (text: string) => {
      heard.stdout += text;
    },
    tell: (text: string) => {
      heard.stderr += text;
    },
    colored: (_: string, text: string) => text,
    isWatched: false,
    async *stdin() {},
    exitWith: (code: number) => {
      heard.code = code;
    },
  };
  return { heard, ended: runProgram(terminal, ['listen', ...args], '0') };
}

test('listen prints signed deliveries, refuses unsigned ones, and ends after its count', async () => {
  await using node = await runNode();
  const by = await newParty(node.base);
  const file = join(folder, 'secret');
  // A subscription needs the port, and the command needs the subscription's secret. So the command runs twice.
  writeFileSync(file, `whsec_${Buffer.alloc(32).toString('base64')}\n`);
  const probe = listening(['--secret', file, '--port', '0', '--count', '1', '--json']);
  const printed = await eventually(
    async () => probe.heard.stderr,
    (text) => text.includes('Listening on'),
  );
  const url = /http:\S+/.exec(printed)?.[0] ?? '';
  const made = await done(node.base, 'POST', '/v1/webhooks', by, { url });
  const ping = () => done(node.base, 'POST', `/v1/webhooks/${made.text('id')}/test`, by);
  await ping();
  await eventually(
    async () => probe.heard.stderr,
    (text) => text.includes('refused: X-SVC-Signature'),
  );
  expect(probe.heard.stdout).toBe('');
  const zero = `whsec_${Buffer.alloc(32).toString('base64')}`;
  const own =
    '{"api_version":"2026-04-14","event":{"id":"x","ledger_id":null,"event_type":"PING","payload":{},"actor_id":null,"created_at":"t","seq":null,"master_id":null,"hash":null},"created_at":"t"}';
  const now = Math.floor(Date.now() / 1_000);
  const headers = {
    'x-svc-signature': svcSignature(webhookKeys(zero), Buffer.from(own)),
    'webhook-id': 'x',
    'webhook-timestamp': String(now),
    'webhook-signature': standardSignature(webhookKeys(zero), 'x', now, Buffer.from(own)),
  };
  expect((await fetch(url, { method: 'POST', headers: { 'webhook-id': 'x' }, body: 'noise' })).status).toBe(401);
  expect(
    (await fetch(url, { method: 'POST', headers, body: 'a'.repeat(2_000_000) }).catch(() => ({ status: 401 }))).status,
  ).toBe(401);
  expect((await fetch(url, { method: 'POST', headers, body: own })).status).toBe(204);
  await probe.ended;
  expect(JSON.parse(probe.heard.stdout)).toMatchObject({ event: { id: 'x', eventType: 'PING' } });

  writeFileSync(file, made.text('secret'));
  const real = listening(['--secret', file, '--port', new URL(url).port, '--count', '1']);
  await eventually(
    async () => real.heard.stderr,
    (text) => text.includes('Listening on'),
  );
  await ping();
  await real.ended;
  expect(real.heard.stdout).toMatch(/PING .* no ledger\n {2}\{"subscription_id":/);
  expect([probe.heard.code, real.heard.code]).toEqual([0, 0]);
});

test.each([
  [['--secret', join(folder, 'nowhere')], 66, 'it is not there'],
  [[], 64, 'required option'],
] as const)('listen %j fails with a sentence', async (args, code, sentence) => {
  const { heard, ended } = listening(args);
  await ended;
  expect(heard.code).toBe(code);
  expect(heard.stderr).toContain(sentence);
});

test.each(['svc_sk_test_not_a_webhook_secret', 'whsec_=', 'whsec_A', `whsec_${Buffer.alloc(31).toString('base64')}`])(
  'listen refuses a file that contains %s',
  async (text) => {
    const file = join(folder, 'wrong');
    writeFileSync(file, text);
    const { heard, ended } = listening(['--secret', file]);
    await ended;
    expect([heard.code, heard.stderr]).toEqual([66, expect.stringContaining('holds no secret')]);
    expect(heard.stderr).not.toContain(text);
  },
);
