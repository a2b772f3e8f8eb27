import { generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import { createClient } from '../../src/client/index.ts';

// Drives /docs in Chromium, for its test and for the pictures of the documentation.

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Why there is no browser; null if there is one. */
export const noBrowser = existsSync(executablePath) ? null : `There is no Chromium at ${executablePath}`;

export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'], timeout: 120_000 });
}

/** An actor that must sign, and a master that it may append to. */
export interface DocsCaller {
  readonly apiKey: string;
  readonly pem: string;
  /** The secret part of the key as a JSON Web Key has it. */
  readonly secret: string;
  readonly kid: string;
  readonly master: string;
}

export async function docsCaller(baseUrl: string): Promise<DocsCaller> {
  await using anonymous = createClient({ baseUrl });
  const register = async (name: string) =>
    (await anonymous.registerDeveloper({ name, email: `${name}@docs.example`, region: 'eu' })).sandbox;
  const [buyer, supplier] = [await register('buyer'), await register('supplier')];
  await using client = createClient({ baseUrl, apiKey: buyer.apiKey });
  const { id: ledgerId } = await client.createLedger({ supplierSvcId: supplier.svcId });
  const { uuid: master } = await client.createMaster({ ledgerId, businessRef: 'PO-1', scope: 'ORDER' });
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const { x = '' } = publicKey.export({ format: 'jwk' });
  const key = Buffer.from(x, 'base64url').toString('base64');
  const { kid } = await client.enrollActorKey({ actorId: buyer.actorId, publicKey: key });
  return {
    apiKey: buyer.apiKey,
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    secret: privateKey.export({ format: 'jwk' }).d ?? '',
    kid,
    master,
  };
}

/** Opens an operation of the page by its link, as from another page. */
export async function openOperation(page: Page, base: string, group: string, operation: string): Promise<void> {
  await page.goto('about:blank');
  await page.goto(`${base}/docs#/${encodeURIComponent(group)}/${operation}`, { waitUntil: 'domcontentloaded' });
  await page.waitForSelector(openBlock(operation));
}

export function openBlock(operation: string): string {
  return `.opblock.is-open[id$="-${operation}"]`;
}

export async function authorize(page: Page, apiKey: string): Promise<void> {
  await page.click('.auth-wrapper .btn.authorize');
  const input = page.locator('input[aria-label="auth-bearer-value"]');
  await input.fill(apiKey);
  await page.locator('.auth-container', { has: input }).locator('button.authorize').click();
  await page.click('.modal-ux .close-modal');
}

export async function giveKey(page: Page, pem: string): Promise<void> {
  await page.click('#signing summary');
  await page.fill('#signing-key', pem);
  await page.click('#signing-use');
  await page.waitForFunction("document.getElementById('signing-status').textContent !== ''");
}

/** Tries the open operation and returns the status of the answer as the page shows it. */
export async function tryOut(page: Page, operation: string, uuid: string, body: object): Promise<string> {
  const block = page.locator(openBlock(operation));
  await block.locator('.try-out__btn').click();
  await block.locator('tr[data-param-name="uuid"] input').fill(uuid);
  await block.locator('textarea.body-param__text').fill(JSON.stringify(body, null, 2));
  await block.locator('.btn.execute').click();
  return block.locator('.live-responses-table .response-col_status').last().innerText();
}
