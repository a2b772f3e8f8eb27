import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { AttackCount, AttackTarget } from './attack.ts';
import { attacks, overTls } from './attacks.ts';
import { startHonestAppends } from './honest.ts';
import { startWatchedNode } from './watched-node.ts';

/**
 * `npm run soak`: a node in production mode with default settings, an honest caller who appends at a steady rate, and
 * each attack in turn.
 * Prints a row an attack and `N passed, N failed`; exit code 1 where a bound was missed or an attack did nothing.
 */
const usage = `Usage: npm run soak -- [options]
  --minutes N      all attacks together, in turn (10). Attacks with a page or reads fill a ledger first. What that takes
                   counts, but a flood has at least 10 s
  --attack NAME    this attack alone; may be given more than once (all)
  --connections N  of an attacker at once (20)
  --appends N      honest appends a second (200; with --cluster or --tls 50)
  --cluster        the node is one of two in a cluster, with a Redis and a Cassandra on this machine. It owns the ledger
                   of the honest appends, of which half go through the other node. Its bounds are wider, because both
                   nodes, Redis, Cassandra and the attacker share the processors, which may be two
  --tls            the node has TLS; only the attacks on its gRPC port that speak TLS, and handshakes without end.
                   Handshakes of the honest caller cost processor time too, so its bounds are wider
  --heap-mib N     V8's limit of the node's old generation (its default)
  --rest-s N       quiet seconds behind an attack before memory is looked at (60 behind the last one, else 5). It is
                   judged only after 60 or more: without this option, behind the last attack alone
  --p99-ms N       what 99 of 100 honest appends must be answered within (300; with --cluster or --tls 1000)
  --memory-mib N   the most memory that the node may take, without its data file (700)
  --help
The attacks are floods. Faults, such as a full disk, have suites of their own: docs/testing.md.`;
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    attack: { type: 'string', multiple: true },
    connections: { type: 'string', default: '20' },
    appends: { type: 'string' },
    cluster: { type: 'boolean', default: false },
    tls: { type: 'boolean', default: false },
    'heap-mib': { type: 'string' },
    'rest-s': { type: 'string' },
    'p99-ms': { type: 'string' },
    'memory-mib': { type: 'string', default: '700' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}

if (values.tls && values.cluster) {
  console.error('Give --tls or --cluster, not both.');
  process.exit(64);
}
const known = values.tls ? overTls : Object.keys(attacks);
const names = values.attack ?? known;
for (const name of names) {
  if (!known.includes(name)) {
    console.error(`There is no attack ${name}${values.tls ? ' with TLS' : ''}: there are ${known.join(', ')}.`);
    process.exit(64);
  }
}
const healthMaxMs = 1_000;
const leftMaxMib = 100;
const longRestS = 60;
const connections = Number(values.connections);
const eachMs = (Number(values.minutes) * 60_000) / names.length;
const floodMinMs = Math.min(eachMs, 10_000);
const beginMaxMs = 120_000;
const costsMore = values.cluster || values.tls;
const appendsPerSecond = Number(values.appends ?? (costsMore ? 50 : 200));
const p99MaxMs = Number(values['p99-ms'] ?? (costsMore ? 1_000 : 300));

const heapMib = values['heap-mib'] === undefined ? null : Number(values['heap-mib']);
await using watched = await startWatchedNode(heapMib, values.cluster ? 'cluster' : values.tls ? 'tls' : 'alone');
const target: AttackTarget = {
  base: watched.base,
  http: new URL(watched.base).host,
  grpc: watched.grpcAddress,
  opsBase: watched.opsBase,
  certificate: watched.certificate,
};
const honest = await startHonestAppends(watched, appendsPerSecond);

function startAttack(name: string) {
  const script = fileURLToPath(new URL('./attack-process.ts', import.meta.url));
  const args = [script, name, JSON.stringify(target), String(connections)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const begun = lines.next().then(({ done }) => done !== true);
  return { child, lines, hasBegun: Promise.race([begun, delay(beginMaxMs, false, { ref: false })]) };
}

/** Ends an attack. Returns what it did, and what is wrong with it if anything is. */
async function endAttack({
  child,
  lines,
  hasBegun,
}: ReturnType<typeof startAttack>): Promise<{ did: string; wrong: string }> {
  const hasEnded = child.exitCode !== null || child.signalCode !== null;
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), 5_000);
  const { value: counted } = await lines.next();
  clearTimeout(late);
  if (!(await hasBegun)) return { did: '', wrong: 'the attack did not begin' };
  if (hasEnded || counted === undefined)
    return { did: '', wrong: 'the attack ended by itself, or did not when told to' };
  const count: AttackCount | null = JSON.parse(counted);
  if (count === null) return { did: '', wrong: '' };
  return { did: `${count.count} ${count.unit}`, wrong: count.count === 0 ? 'the attack did nothing' : '' };
}

let [passed, failed] = [0, 0];
console.log(
  'attack | what it did | peak MiB without data file | health max ms | appends p50, p99 ms | failures ' +
    '| anonymous MiB afterwards | missed',
);
await delay(5_000);
watched.take();
let calm = watched.anonymousMib();
console.log(`before the attacks: ${calm} anonymous MiB`);
honest.take();
for (const [at, name] of names.entries()) {
  const startedMs = performance.now();
  const attack = startAttack(name);
  if (await attack.hasBegun) await delay(Math.max(eachMs - (performance.now() - startedMs), floodMinMs));
  const { did, wrong } = await endAttack(attack);
  const peaks = watched.take();
  const appends = honest.take();
  const restS = Number(values['rest-s'] ?? (at === names.length - 1 ? 60 : 5));
  await delay(restS * 1_000);
  const left = watched.anonymousMib();
  const missed = [
    wrong,
    ...watched.ended(),
    (await watched.owns(honest.ledgerId)) ? '' : 'the ledger is no longer of the watched node',
    peaks.memoryMib > Number(values['memory-mib']) ? 'memory' : '',
    peaks.healthMs > healthMaxMs || peaks.healthFailures > 0 ? 'health' : '',
    appends.p99Ms > p99MaxMs || appends.count === 0 ? 'appends' : '',
    appends.failures.length > 0 ? `failures, such as ${appends.failures[0]}` : '',
    restS >= longRestS && left > calm + leftMaxMib ? `memory afterwards (before: ${calm})` : '',
  ].filter((reason) => reason !== '');
  const figures = [
    did,
    peaks.memoryMib,
    peaks.healthMs,
    `${appends.p50Ms}, ${appends.p99Ms}`,
    appends.failures.length,
    left,
  ];
  console.log([name, ...figures, missed.join('; ') || 'none'].join(' | '));
  if (missed.length === 0) passed += 1;
  else failed += 1;
  if (watched.ended().length > 0) break;
  // The honest appends alone fill some of the node's memory: all attacks are compared with what it held after those.
  if (name === 'none') calm = left;
  honest.take();
  watched.take();
}
await honest.stop();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
