import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { testDir } from '../../support/running-node.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

function ci(script: string, args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [`.ci/${script}`, ...args], {
    cwd: root,
    encoding: 'utf8',
  });
  return { status, said: stdout + stderr };
}

function licensesOf(packages: object) {
  const dir = testDir();
  const file = join(dir, 'package-lock.json');
  writeFileSync(file, JSON.stringify({ packages: { '': {}, ...packages } }));
  return ci('licenses.mjs', [file]);
}

test('the licenses of all production dependencies are allowed', () => {
  expect(ci('licenses.mjs', [])).toMatchObject({ status: 0 });
});

test('a production dependency under another license, or none, is named', () => {
  const { status, said } = licensesOf({
    'node_modules/good': { license: '(MIT OR GPL-3.0-only)' },
    'node_modules/tool': { license: 'GPL-3.0-only', dev: true },
    'node_modules/copyleft': { license: 'AGPL-3.0-only' },
    'node_modules/both': { license: 'MIT AND GPL-3.0-only' },
    'node_modules/good/node_modules/@a/none': {},
  });
  expect(status).toBe(1);
  expect(said).toContain('licenses: copyleft has AGPL-3.0-only');
  expect(said).toContain('licenses: both has MIT AND GPL-3.0-only');
  expect(said).toContain('licenses: @a/none has no license');
  expect(said).toContain('1 of 4 production dependencies may be shipped');
});

test('a high fault of a production dependency fails the audit, and a low one does not', () => {
  const audit = (severity: string) => {
    const vulnerabilities = { a: { name: 'a', severity, range: '<2' } };
    return ci('audit.mjs', ['echo', JSON.stringify({ auditReportVersion: 2, vulnerabilities })]);
  };
  expect(audit('high')).toMatchObject({ status: 1, said: expect.stringContaining('a <2 has a high fault') });
  expect(audit('low')).toMatchObject({ status: 0 });
});

test('a registry that gives no audit is said, and does not fail the run', () => {
  const unreachable = ci('audit.mjs', ['echo', '{"message":"405 Method Not Allowed - POST there"}']);
  expect(unreachable).toMatchObject({ status: 0, said: expect.stringContaining('NOT CHECKED') });
  expect(unreachable.said).toContain('(405 Method Not Allowed)');
  expect(ci('audit.mjs', ['false'])).toMatchObject({ status: 0, said: expect.stringContaining('NOT CHECKED') });
});
