import { expect, test } from 'vitest';
import { conceptExamples } from '../support/concept-examples.ts';
import { documentedJson, withoutChance } from '../support/documented-json.ts';
import { productionSettings } from '../support/production-settings.ts';
import { runNode, suiteDir } from '../support/running-node.ts';

const folder = suiteDir();

test('every example of the concepts is what a node answers, but for its ids, hashes and times', {
  timeout: 60_000,
}, async () => {
  // Only in production mode does the trust anchor name the authority's key.
  await using node = await runNode({ env: productionSettings(folder) });
  const live = await conceptExamples(node.base);
  expect(withoutChance(documentedJson('docs/concepts.md'))).toEqual(withoutChance(live));
});
