import { expect, it } from 'vitest';
import { events, exported } from '../../support/export-of-vectors.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';

const { file } = newShell();

it('an export with more problems than are kept is invalid, with the count of all of them', async () => {
  const lines = Array.from({ length: 10_500 }, (_, index) => ({ ...events[4], id: `no id ${index}` }));
  const path = file('forged.jsonl', exported(lines, { kind: 'ledger' }));
  const { code, out } = await runHere(['verify', path]);
  expect(code).toBe(1);
  expect(out).toMatch(/^INVALID {2}10500 problems\n/);
  expect(out).toContain('  ✗ and 10480 more: see --json, which shows the first 10000\n');
  const json = await runHere(['verify', path, '--json']);
  expect(json.code).toBe(1);
  const shown = JSON.parse(json.out) as { readonly issue_count: number; readonly issues: readonly unknown[] };
  expect(shown.issue_count).toBe(10_500);
  expect(shown.issues).toHaveLength(10_000);
});
