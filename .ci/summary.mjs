// The last line of a run, from what vitest reported: `node .ci/summary.mjs REPORT STATUS`, the file of its JSON
// reporter, and 0 if vitest and the steps beside it have passed. A test passes only where the report says so. The
// report tells of tests whose worker died as pending, of those behind a hook that threw as skipped, and of files that
// did not load nothing but that they failed: all of these have failed here.
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const [reportFile = '', status = '1'] = process.argv.slice(2);

/** The files of the report; none where vitest did not get as far as writing one. */
function reportedFiles() {
  try {
    return JSON.parse(readFileSync(reportFile, 'utf8')).testResults;
  } catch {
    return [];
  }
}

/** How many tests of a file passed, failed and were left out on purpose. */
function countFile({ status: outcome, assertionResults }) {
  const count = (...statuses) => assertionResults.filter((test) => statuses.includes(test.status)).length;
  const passed = count('passed');
  const skipped = count('skipped', 'todo');
  const failed = assertionResults.length - passed - skipped;
  if (outcome !== 'failed' || failed > 0) return { passed, failed, skipped };
  // No test of it has failed, so it was something around them, and it is why they were skipped.
  return { passed, failed: Math.max(skipped, 1), skipped: 0 };
}

const files = reportedFiles();
const total = { passed: 0, failed: 0, skipped: 0 };
for (const file of files) {
  const { passed, failed, skipped } = countFile(file);
  total.passed += passed;
  total.failed += failed;
  total.skipped += skipped;
}
const reported = new Set(files.map(({ name }) => name));
const testFiles = readdirSync('test', { recursive: true }).filter((name) => name.endsWith('.test.ts'));
total.failed += testFiles.filter((name) => !reported.has(resolve('test', name))).length;
// An error outside of all tests and files.
if (total.failed === 0 && total.skipped === 0 && (status !== '0' || total.passed === 0)) total.failed = 1;

const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : '';
console.log(`${total.passed} passed, ${total.failed} failed${skipped}`);
process.exitCode = total.failed === 0 && total.skipped === 0 && status === '0' ? 0 : 1;
