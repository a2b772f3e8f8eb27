import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openBrowser } from '../support/docs-browser.ts';
import { append, closeOf, newMaster, newOrder, type Order } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { type RunningTestNode, runNode } from '../support/running-node.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 600_000 });

const run = promisify(execFile);
const dir = mkdtempSync(join(tmpdir(), 'follow-readers-'));
const page = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>reader</title>');
});
let node: RunningTestNode;
let order: Order;
let browser: Browser;
let pageOrigin: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve));
  pageOrigin = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
  node = await runNode({ env: { CORS_ORIGINS: pageOrigin } });
  order = await newOrder(node.base, { keyed: false });
  const master = await newMaster(order);
  await append(master, order.buyer, 'PACKED', { n: 1 });
  await append(master, order.buyer, 'SHIPPED', { n: 2 });
  const env = { ...process.env, GOBIN: dir };
  await run('go', ['install', 'github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4'], { cwd: dir, env });
  await run('python3', ['-m', 'venv', join(dir, 'venv')]);
  const python = join(dir, 'venv/bin/python');
  await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', 'httpx==0.28.1']);
  browser = await openBrowser();
});

afterAll(async () => {
  await browser?.close();
  await node?.stop();
  page.close();
  rmSync(dir, { recursive: true, force: true });
});

const past = [0, 1, 2, 3, 4];
const authorization = () => order.buyer.bearer.authorization ?? '';
const address = () => `${node.base}/v1/ledgers/${order.ledgerId}/events/follow`;

/** The ids of what a program prints until it was caught up; it then is ended. */
function idsUntilCaughtUp(command: string, args: readonly string[]): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args);
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
      if (/event: caught_up|caughtUp/.test(out)) child.kill();
    });
    child.once('error', reject);
    child.once('close', () => resolve(idsOf(out)));
  });
}

/** The ids of events in the text of server-sent events. */
function idsOf(text: string): number[] {
  return [...text.matchAll(/^id: (\d+)\r?\nevent: event$/gm)].map(([, id]) => Number(id));
}

const pythonReader = `
import httpx, sys
address, authorization, last = sys.argv[1:4]
headers = {"authorization": authorization, "accept": "text/event-stream"}
if last: headers["last-event-id"] = last
with httpx.stream("GET", address, params={"after_seq": -1}, headers=headers, timeout=30) as answer:
    answer.raise_for_status()
    for line in answer.iter_lines():
        print(line, flush=True)
        if line == "event: caught_up": break
`;

test('a reader in Python with httpx follows the ledger, and resumes by Last-Event-ID', async () => {
  const read = async (last: string) => {
    const args = ['-c', pythonReader, address(), authorization(), last];
    return idsOf((await run(join(dir, 'venv/bin/python'), args)).stdout);
  };
  expect(await read('')).toEqual(past);
  expect(await read('2')).toEqual([3, 4]);
});

test('curl -N follows the ledger, and resumes by Last-Event-ID', async () => {
  const read = (...more: string[]) =>
    idsUntilCaughtUp('curl', ['-sN', '-H', `authorization: ${authorization()}`, ...more, `${address()}?after_seq=-1`]);
  expect(await read()).toEqual(past);
  expect(await read('-H', 'last-event-id: 2')).toEqual([3, 4]);
});

test('grpcurl follows the ledger, and resumes by after_seq, until it is ended', async () => {
  const read = async (after: number) => {
    const request = JSON.stringify({ ledger_id: order.ledgerId, after_seq: after });
    const options = ['-plaintext', '-max-time', '5', '-H', `authorization: ${authorization()}`, '-d', request];
    const args = [...options, node.grpcAddress, 'svc.v1.LedgerService/FollowLedgerEvents'];
    const { stdout } = await run(join(dir, 'grpcurl'), args).catch((error: { stdout: string }) => error);
    expect(stdout).toContain('"caughtUp"');
    return [...stdout.matchAll(/"resumeAfter": "(\d+)"/g)]
      .map(([, seq]) => Number(seq))
      .filter((seq, at, all) => all.indexOf(seq) === at);
  };
  expect(await read(-1)).toEqual(past);
  expect(await read(2)).toEqual([3, 4]);
});

test('a page in Chromium follows the ledger by fetch, resumes by Last-Event-ID, and is told of the closing', async () => {
  const tab = await browser.newPage();
  await tab.goto(pageOrigin);
  /** Reads until the text holds `until`, or to the end. */
  const read = (last: string | null, until: string) =>
    tab.evaluate(
      async (given) => {
        const headers = {
          authorization: given.authorization,
          ...(given.last === null ? {} : { 'last-event-id': given.last }),
        };
        const answer = await fetch(`${given.address}?after_seq=-1`, { headers });
        const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
        let text = '';
        while (reader !== undefined && !text.includes(given.until)) {
          const { done, value } = await reader.read();
          if (done) break;
          text += value;
        }
        await reader?.cancel();
        return { status: answer.status, text };
      },
      { address: address(), authorization: authorization(), last, until },
    );
  expect(idsOf((await read(null, 'event: caught_up')).text)).toEqual(past);
  expect(idsOf((await read('2', 'event: caught_up')).text)).toEqual([3, 4]);
  const { path, headers } = closeOf(order, order.buyer);
  await done(node.base, 'PATCH', path, { headers });
  const rest = await read('4', 'nothing like this comes');
  expect(idsOf(rest.text)).toEqual([5]);
  expect((await read('5', 'nothing like this comes')).status).toBe(204);
});
