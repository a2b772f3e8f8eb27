import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newParty } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { runNode, suiteDir } from '../support/running-node.ts';

const dataDir = suiteDir();

test('the secret of a webhook is in no file, neither in the subscription nor in the stored answer', async () => {
  const node = await runNode({ dataDir });
  const by = await newParty(node.base);
  const url = 'https://hooks.example/where-it-goes';
  const secrets: string[] = [];
  for (const headers of [by.bearer, { ...by.bearer, 'idempotency-key': randomUUID() }]) {
    const made = await done(node.base, 'POST', '/v1/webhooks', { headers, body: { url } });
    secrets.push(made.text('secret'));
  }
  await node.stop();
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
  // The search finds other stored values.
  expect(files.some((bytes) => bytes.includes(url))).toBe(true);
  for (const secret of secrets) {
    const encoded = secret.replace(/^whsec_/, '');
    for (const form of [encoded, Buffer.from(encoded, 'base64'), Buffer.from(secret).toString('base64')])
      expect(files.some((bytes) => bytes.includes(form))).toBe(false);
  }
});
