import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { compileCache } from '../../../support/compile-cache.ts';
import { nodeForTests } from '../../../support/node-for-tests.ts';
import { runHere } from '../../../support/program-here.ts';
import { suiteDir } from '../../../support/running-node.ts';
import { cliMain } from '../../../support/shell.ts';

const config = join(suiteDir(), 'config');

const environment = () => ({ XDG_CONFIG_HOME: config, LEDGER_TRUST_URL: node.base });
const lt = (args: string) => runHere(args.split(' '), { env: environment(), input: '' });
async function done(args: string): Promise<string> {
  const { code, out, err } = await lt(args);
  expect({ args, code, err }).toEqual({ args, code: 0, err: '' });
  return out.trim();
}

const node = await nodeForTests();
await done('register --profile buyer --name buyer --email buyer@example.com -q');
await done('register --name supplier --email supplier@example.com -q');

async function newLedger() {
  const ledger = await done('ledgers open --buyer @buyer -q');
  const master = await done(`masters create ${ledger} --ref PO-1 -q`);
  await done(`append ${master} --type PACKED --payload {"n":1} -q`);
  return { ledger, master };
}

test('follow prints a line an event with a tick for each check, and ends with 0 behind the closing', async () => {
  const { ledger } = await newLedger();
  await done(`ledgers close ${ledger} -q`);
  const { code, out, err } = await lt(`follow ${ledger} --from 0`);
  expect(code).toBe(0);
  const lines = out.trim().split('\n');
  expect(lines).toHaveLength(5);
  expect(lines[0]).toMatch(/^0 {2}\S+Z {2}✓ content ✓ chain ✓ seal {2}\S+ {2}- {2}GENESIS$/);
  expect(lines[3]).toMatch(/^3 {2}\S+Z {2}✓ content ✓ chain ✓ signature {2}\S+ {2}\S+ {2}PACKED$/);
  expect(err).toBe('Caught up at seq 4: new events follow.\nClosed: nothing more follows.\n');
});

test('follow --json prints a line of JSON an event, and a master alone has no chain to check', async () => {
  const { ledger, master } = await newLedger();
  await done(`ledgers close ${ledger} -q`);
  const { out } = await lt(`follow ${ledger} --master ${master} --from 0 --json`);
  const [first = '', ...more] = out.trim().split('\n');
  expect(more).toHaveLength(1);
  expect(JSON.parse(first)).toMatchObject({
    event: { event_type: 'TRACELEDGER_MASTER_CREATED', master_seq: 0, ledger_id: ledger },
    checks: { content_hash: true, chain_hash: false, actor_signature: true, authority_seal: false },
  });
});

test('follow ends with 64 for a wrong command line, and with 1 for what the service refuses', async () => {
  expect((await lt('follow')).code).toBe(64);
  expect((await lt('follow x --from y')).code).toBe(64);
  const refused = await lt('follow 0193a000-0000-7000-8000-000000000001 --from 0');
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('(not_found, request ')]);
});

test('follow goes on until it is interrupted, and then ends with 0', async () => {
  const { ledger, master } = await newLedger();
  const child = spawn(process.execPath, [cliMain, 'follow', ledger], { env: { ...compileCache, ...environment() } });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString();
  });
  const ended = new Promise<number | null>((resolve) => void child.once('close', resolve));
  onTestFinished(() => void child.kill('SIGKILL'));
  await expect.poll(() => err, { timeout: 20_000 }).toContain('Caught up at seq 3');
  await done(`append ${master} --type SHIPPED --payload {"n":2} -q`);
  await expect.poll(() => out, { timeout: 20_000 }).toContain('SHIPPED');
  child.kill('SIGINT');
  expect(await ended).toBe(0);
});
