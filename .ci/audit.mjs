// Asks the registry for known faults in production dependencies: `node .ci/audit.mjs [COMMAND...]`; COMMAND stands in
// for npm audit in tests. Ends with 1 if a fault is high or critical. A registry without audits, or none, is said and
// passes: a change must not fail because of the network.
import { spawnSync } from 'node:child_process';

const npmAudit = ['npm', 'audit', '--omit=dev', '--json', '--fetch-retries=0', '--fetch-timeout=10000'];
const given = process.argv.slice(2);
const [command, ...args] = given.length > 0 ? given : npmAudit;
const run = spawnSync(command, args, { encoding: 'utf8', timeout: 30_000 });
const report = parsed(run.stdout);

if (report?.vulnerabilities === undefined) {
  const reason = report?.message ?? run.error?.message ?? `exit code ${run.status}`;
  console.log(`audit: NOT CHECKED, because the registry gives no audit (${reason.split(/ - |\n/, 1)[0]})`);
  process.exit(0);
}
const grave = Object.values(report.vulnerabilities).filter(({ severity }) => ['high', 'critical'].includes(severity));
for (const { name, severity, range } of grave) console.error(`audit: ${name} ${range} has a ${severity} fault`);
console.log(`audit: ${grave.length} production dependencies have a high or critical fault`);
process.exit(grave.length > 0 ? 1 : 0);

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
