import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { conceptExamples } from '../support/concept-examples.ts';
import { documentedJson, withoutChance } from '../support/documented-json.ts';
import { runNode, suiteDir } from '../support/running-node.ts';

const folder = suiteDir();

/** Only in production mode does the trust anchor publish the authority's keys. */
function production() {
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const { privateKey } = generateKeyPairSync('ed25519');
  return {
    SVC_MODE: 'production',
    AUTHORITY_KEY_FILE: file('authority.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
    SECRETS_KEY_FILE: file('secrets.key', randomBytes(32).toString('base64')),
    TLS_TERMINATED: '1',
    OPS_HOST: '127.0.0.1',
  };
}

test('every example of the concepts is what a node answers, but for its ids, hashes and times', {
  timeout: 60_000,
}, async () => {
  await using node = await runNode({ env: production() });
  const live = await conceptExamples(node.base);
  expect(withoutChance(documentedJson('docs/concepts.md'))).toEqual(withoutChance(live));
});
