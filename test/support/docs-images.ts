import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { authorize, docsCaller, giveKey, openBrowser, openOperation, tryOut } from './docs-browser.ts';
import { startNodeProcess } from './node-process.ts';

/** Makes the pictures in docs/images: `npm run docs:images`. */
const folder = join(import.meta.dirname, '../../docs/images');
mkdirSync(folder, { recursive: true });

const dataDir = mkdtempSync(join(tmpdir(), 'docs-images-'));
await using node = await startNodeProcess({ DATA_DIR: dataDir });
const caller = await docsCaller(node.base);
const browser = await openBrowser();
try {
  const page = await browser.newPage({ viewport: { width: 1000, height: 800 } });
  page.setDefaultTimeout(200_000);
  await page.goto(`${node.base}/docs`, { waitUntil: 'domcontentloaded' });
  await page.waitForSelector('.opblock-tag-section');
  await page.screenshot({ path: join(folder, 'docs-groups.png'), fullPage: true });
  await openOperation(page, node.base, 'Events', 'AppendEvent');
  await authorize(page, caller.apiKey);
  await giveKey(page, caller.pem);
  await tryOut(page, 'AppendEvent', caller.master, { event_type: 'GOODS_COUNTED', payload: { pallets: 4 } });
  await page.locator('#signing').screenshot({ path: join(folder, 'docs-signing.png') });
} finally {
  await browser.close();
  await node.kill();
  rmSync(dataDir, { recursive: true, force: true });
}
