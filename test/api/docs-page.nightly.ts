import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import {
  authorize,
  type DocsCaller,
  docsCaller,
  giveKey,
  noBrowser,
  openBlock,
  openBrowser,
  openOperation,
  tryOut,
} from '../support/docs-browser.ts';
import { type RunningTestNode, runNode } from '../support/running-node.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

if (noBrowser !== null && process.env.REQUIRE_BACKENDS === '1') throw new Error(noBrowser);

describe.skipIf(noBrowser !== null)('the documentation page in Chromium', () => {
  let node: RunningTestNode;
  let browser: Browser;
  let page: Page;
  let caller: DocsCaller;
  /** Every request of the page, with its headers and body. */
  const sent: string[] = [];
  /** What the page reports: errors, and what its policy refuses. */
  const reported: string[] = [];

  beforeAll(async () => {
    node = await runNode();
    caller = await docsCaller(node.base);
    browser = await openBrowser();
    page = await browser.newPage({ viewport: { width: 1100, height: 900 } });
    page.setDefaultTimeout(200_000);
    page.on('request', (request) => {
      sent.push([request.url(), JSON.stringify(request.headers()), request.postData() ?? ''].join('\n'));
    });
    page.on('pageerror', (error) => reported.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') reported.push(message.text());
    });
  });

  afterAll(async () => {
    await browser?.close();
    await node?.stop();
  });

  it('opens the operation that a link names, on the first load and when the link changes', async () => {
    await openOperation(page, node.base, 'Actors and keys', 'CreateActor');
    expect(await page.locator('.opblock.is-open').count()).toBe(1);
    await page.evaluate("location.hash = '#/Ledgers/CreateLedger'");
    await page.waitForSelector(openBlock('CreateLedger'));
  });

  it('signs a call with a key that no request carries and nothing stores', async () => {
    await openOperation(page, node.base, 'Events', 'AppendEvent');
    await authorize(page, caller.apiKey);
    const event = { event_type: 'GOODS_COUNTED', payload: { pallets: 4, place: 'Zürich & <Genf>' } };
    const unsigned = await tryOut(page, 'AppendEvent', caller.master, event);
    expect(unsigned).toContain('401');
    await page.locator('.try-out__btn.cancel, .btn-clear').last().click();

    await giveKey(page, caller.pem);
    expect(await page.inputValue('#signing-key')).toBe('');
    await page.locator('.btn.execute').click();
    await page.locator('.live-responses-table .response-col_status', { hasText: '200' }).waitFor();
    await using client = createClient({ baseUrl: node.base, apiKey: caller.apiKey });
    const { events } = await client.listMasterEvents({ uuid: caller.master });
    expect(events.at(-1)).toMatchObject({ eventType: 'GOODS_COUNTED', signingKeyId: caller.kid });

    expect(sent.some((text) => text.includes('x-actor-sig'))).toBe(true);
    const base64 = caller.pem.replaceAll(/-----[A-Z ]+-----|\s/g, '');
    const forms = [base64, caller.secret, Buffer.from(caller.secret, 'base64url').toString('hex'), 'PRIVATE KEY'];
    expect(sent.filter((text) => forms.some((form) => text.includes(form)))).toEqual([]);
    const stored = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])');
    expect(stored).toBe('[{},{},""]');
  });

  it('reports no error but the refused call', () => {
    expect(reported.filter((text) => !text.includes('401'))).toEqual([]);
  });
});
