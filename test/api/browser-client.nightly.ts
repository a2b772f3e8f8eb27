import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, normalize } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Backend } from '../support/backends/backend.ts';
import { describeOn } from '../support/backends/for-tests.ts';
import { exampleOf, installClient } from '../support/client-package.ts';
import { noBrowser, openBrowser } from '../support/docs-browser.ts';
import { onLoopback } from '../support/loopback.ts';
import { type RunningTestNode, runNode, suiteDir } from '../support/running-node.ts';

const dir = suiteDir();

const chromium: Backend<null> =
  noBrowser === null
    ? { kind: 'there', address: null, startupMs: 0, from: 'this machine' }
    : { kind: 'missing', reason: `${noBrowser}: install the package chromium, or set CHROMIUM` };

/** How a page without a bundler finds the packages. */
const importMap = {
  imports: {
    'ledger-trust-client': '/node_modules/ledger-trust-client/lib/client/browser.js',
    '@bufbuild/protobuf': '/node_modules/@bufbuild/protobuf/dist/esm/index.js',
    '@bufbuild/protobuf/codegenv2': '/node_modules/@bufbuild/protobuf/dist/esm/codegenv2/index.js',
    '@bufbuild/protobuf/wkt': '/node_modules/@bufbuild/protobuf/dist/esm/wkt/index.js',
    '@noble/curves/': '/node_modules/@noble/curves/',
    '@noble/hashes/': '/node_modules/@noble/hashes/',
  },
};
const pages = new Map<string, string>();
const server = createServer((request, response) => {
  const path = normalize(new URL(request.url ?? '/', 'http://page').pathname);
  const page = pages.get(path);
  if (page !== undefined) {
    const script = `<script type="module">${page}</script>`;
    const map = `<script type="importmap">${JSON.stringify(importMap)}</script>`;
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html>${map}${script}`);
  } else if (path.startsWith('/node_modules/') && existsSync(join(dir, path))) {
    response.writeHead(200, { 'content-type': 'text/javascript' }).end(readFileSync(join(dir, path)));
  } else response.writeHead(404).end();
});

describeOn('the client in Chromium', 'Chromium', chromium, () => {
  let browser: Browser;
  let node: RunningTestNode;
  let origin: string;

  beforeAll(async () => {
    await installClient(dir);
    origin = `http://127.0.0.1:${await onLoopback(server)}`;
    node = await runNode({ env: { CORS_ORIGINS: origin } });
    browser = await openBrowser();
  }, 300_000);
  afterAll(async () => {
    await browser?.close();
    await node?.[Symbol.asyncDispose]();
    server.close();
  });

  /** What the page's script writes to the console, up to the first line of it or the first error. */
  async function said(path: string, script: string): Promise<string> {
    pages.set(path, script);
    const page = await browser.newPage();
    try {
      const first = new Promise<string>((resolve) => {
        page.on('console', (message) => {
          // The browser asks for an icon on its own account.
          if (!/favicon/.test(message.location().url)) resolve(message.text());
        });
        page.on('pageerror', (error) => resolve(`${error.name}: ${error.message}`));
      });
      await page.goto(origin + path);
      return await first;
    } finally {
      await page.close();
    }
  }

  it('registers, signs, appends and verifies from a page of another origin', async () => {
    expect(await said('/append', exampleOf('append', node.base))).toBe('4 events, 2 signatures: valid');
  });

  it('signs with a key of WebCrypto that cannot be read', async () => {
    expect(await said('/key', exampleOf('browser', node.base))).toBe('true');
  });

  it('follows a ledger by fetch from a page of another origin, and ends when it is closed', async () => {
    expect(await said('/follow', exampleOf('follow', node.base))).toBe('GENESIS, ORDER_OPENED, LEDGER_CLOSED');
  });

  it('finds a forged payload', async () => {
    const forged = exampleOf('append', node.base).replace(
      'events.push(event)',
      "events.push(event.eventType === 'SHIPMENT_DISPATCHED' ? { ...event, payload: { ...event.payload, pallets: 5 } } : event)",
    );
    expect(await said('/forged', forged)).toBe('4 events, 1 signatures: invalid');
  });

  it('cannot call a node that does not name its origin', async () => {
    await using closed = await runNode();
    const script = `import { createClient } from 'ledger-trust-client';
      const call = createClient({ baseUrl: '${closed.base}', attemptsMax: 1 }).getHealth();
      call.catch(({ code }) => { document.title = code; });`;
    pages.set('/refused', script);
    const page = await browser.newPage();
    await page.goto(`${origin}/refused`);
    await expect.poll(() => page.title(), { timeout: 20_000 }).toBe('connection_lost');
    await page.close();
  });
});
