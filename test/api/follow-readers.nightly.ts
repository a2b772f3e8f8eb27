import { execFile, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openBrowser } from '../support/docs-browser.ts';
import { append, closeOf, type Master, newMaster, newOrder, type Order } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { type RunningTestNode, runNode, suiteDir } from '../support/running-node.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 600_000 });

const run = promisify(execFile);
const dir = suiteDir();
const page = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>reader</title>');
});
let node: RunningTestNode;
let order: Order;
let master: Master;
let browser: Browser;
let pageOrigin: string;

beforeAll(async () => {
  pageOrigin = `http://127.0.0.1:${await onLoopback(page)}`;
  node = await runNode({ env: { CORS_ORIGINS: pageOrigin } });
  order = await newOrder(node.base, { keyed: false });
  master = await newMaster(order);
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
});

/** The seqs of the ledger's events so far. */
const seqs = [0, 1, 2, 3, 4];
const liveType = 'WRITTEN_MEANWHILE';
async function appendOneMore(): Promise<void> {
  seqs.push(seqs.length);
  await append(master, order.buyer, liveType, { n: seqs.length });
}
const authorization = () => order.buyer.bearer.authorization ?? '';
const address = () => `${node.base}/v1/ledgers/${order.ledgerId}/events/follow`;

/**
 * What a program prints that follows the ledger: the past, and one event that is written behind it. `last`: how the
 * print of an event ends. The program then is ended.
 */
function printedBy(command: string, args: readonly string[], last = /\n\n/): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args);
    let out = '';
    let isAppended = false;
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
      const [, live = null] = out.split(/event: caught_up|"caughtUp"/);
      if (live === null) return;
      if (!isAppended) appendOneMore().catch(reject);
      isAppended = true;
      const [, end = ''] = live.split(liveType);
      if (last.test(end)) child.kill();
    });
    child.once('error', reject);
    child.once('close', () => resolve(out));
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
`;

import { onLoopback } from '../support/loopback.ts';

test('a reader in Python with httpx follows the ledger, and resumes by Last-Event-ID', async () => {
  const read = async (last: string) => {
    const args = ['-c', pythonReader, address(), authorization(), last];
    return idsOf(await printedBy(join(dir, 'venv/bin/python'), args));
  };
  expect(await read('')).toEqual(seqs);
  expect(await read('2')).toEqual(seqs.slice(3));
});

test('curl -N follows the ledger, and resumes by Last-Event-ID', async () => {
  const read = async (...more: string[]) => {
    const args = ['-sN', '-H', `authorization: ${authorization()}`, ...more, `${address()}?after_seq=-1`];
    return idsOf(await printedBy('curl', args));
  };
  expect(await read()).toEqual(seqs);
  expect(await read('-H', 'last-event-id: 2')).toEqual(seqs.slice(3));
});

test('grpcurl follows the ledger, and resumes by after_seq', async () => {
  const read = async (after: number) => {
    const request = JSON.stringify({ ledger_id: order.ledgerId, after_seq: after });
    const options = ['-plaintext', '-H', `authorization: ${authorization()}`, '-d', request];
    const args = [...options, node.grpcAddress, 'svc.v1.LedgerService/FollowLedgerEvents'];
    const printed = await printedBy(join(dir, 'grpcurl'), args, /"resumeAfter": "\d+"/);
    return [...printed.matchAll(/"resumeAfter": "(\d+)"/g)]
      .map(([, seq]) => Number(seq))
      .filter((seq, at, all) => all.indexOf(seq) === at);
  };
  expect(await read(-1)).toEqual(seqs);
  expect(await read(2)).toEqual(seqs.slice(3));
});

test('a page in Chromium follows the ledger by fetch, resumes by Last-Event-ID, and is told of the closing', async () => {
  const tab = await browser.newPage();
  await tab.goto(pageOrigin);
  await tab.exposeFunction('caughtUp', appendOneMore);
  /** Reads until the text holds `until`, or to the end. With `isLive` one event more is written behind the past. */
  const read = (last: string | null, until: string, isLive = false) =>
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
          const wasPast = !text.includes('event: caught_up');
          text += value;
          if (given.isLive && wasPast && text.includes('event: caught_up'))
            await (globalThis as unknown as { caughtUp(): Promise<void> }).caughtUp();
        }
        await reader?.cancel();
        return { status: answer.status, text };
      },
      { address: address(), authorization: authorization(), last, until, isLive },
    );
  expect(idsOf((await read(null, `"n":${seqs.length + 1}`, true)).text)).toEqual(seqs);
  const { path, headers } = closeOf(order, order.buyer);
  await done(node.base, 'PATCH', path, { headers });
  const closed = seqs.length;
  expect(idsOf((await read(String(closed - 2), 'nothing like this comes')).text)).toEqual([closed - 1, closed]);
  expect((await read(String(closed), 'nothing like this comes')).status).toBe(204);
});
