import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { SeededRandom } from '../../simulation/random.ts';
import { type FaultKind, faults, planFaults } from '../faults/kinds.ts';
import { startCluster } from '../rig/cluster-under-test.ts';
import { aimText } from './aims.ts';
import { runCampaign } from './campaign.ts';

/**
 * `npm run campaign`: three nodes with their own Redis and Cassandra, load, faults of every kind, and the history
 * checker. Prints progress on stderr and a JSON report on stdout; exits with 1 if an aim was missed. The full campaign
 * takes 30 to 40 minutes; `--faults 9 --acknowledged 5000` is a short one. Restarted nodes run the code of this tree,
 * so run a long one from a copy.
 */
const usage = `Usage: npm run campaign -- [options]
  --faults N           how many faults (220)
  --kind A,B           faults of these kinds only: ${Object.keys(faults).join(', ')}
  --seed N             of the order of faults (another one each time)
  --acknowledged N     appends that must be acknowledged before it ends (100000)
  --ledgers N          (24)
  --workers N          callers over REST and gRPC (16)
  --streams N          callers with a stream each (2)
  --rest-ms N          the longest pause between two calls of a caller (100)
  --followers N        followers of the ledgers (12)
  --minutes N          no new fault begins after so many (600)
  --cassandra-nodes N  1 or 3 (1)
  --keep               keeps the nodes' logs and data
  --out FILE           writes the report there too
  --help`;
const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '220' },
    kind: { type: 'string' },
    seed: { type: 'string' },
    acknowledged: { type: 'string', default: '100000' },
    ledgers: { type: 'string', default: '24' },
    workers: { type: 'string', default: '16' },
    streams: { type: 'string', default: '2' },
    'rest-ms': { type: 'string', default: '100' },
    followers: { type: 'string', default: '12' },
    minutes: { type: 'string', default: '600' },
    'cassandra-nodes': { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
    out: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) {
  console.log(usage);
  process.exit(0);
}

const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed);
const kinds = kindsOf(Number(values.faults));
const tell = (line: string) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);
tell(`seed ${seed}, ${kinds.length} faults`);
const cluster = await startCluster({
  nodes: 3,
  cassandra: null,
  cassandraNodes: values['cassandra-nodes'] === '3' ? 3 : 1,
  bucketEvents: 256,
  keep: values.keep,
});
try {
  tell(`${cluster.nodes.length} nodes; logs in ${cluster.dir}`);
  const report = await runCampaign(cluster, {
    seed,
    kinds,
    ledgers: Number(values.ledgers),
    workers: Number(values.workers),
    streams: Number(values.streams),
    restMaxMs: Number(values['rest-ms']),
    followers: Number(values.followers),
    acknowledgedMin: Number(values.acknowledged),
    faultsForMs: Number(values.minutes) * 60_000,
    pauseMs: 1_500,
    proofEvery: Math.min(10, Math.max(1, Math.floor(kinds.length / 3))),
    tell,
  });
  const text = `${JSON.stringify(report, null, 2)}\n`;
  process.stdout.write(text);
  if (values.out !== undefined) writeFileSync(values.out, text);
  for (const aim of report.aims) tell(aimText(aim));
  process.exitCode = report.reached ? 0 : 1;
} finally {
  await cluster[Symbol.asyncDispose]();
}
process.exit();

function kindsOf(count: number): FaultKind[] {
  const { kind } = values;
  if (kind === undefined) return planFaults(count, new SeededRandom(seed));
  const named = kind.split(',').filter((name): name is FaultKind => name in faults);
  if (named.length === 0) throw new TypeError(`--kind is some of: ${Object.keys(faults).join(', ')}`);
  return Array.from({ length: count }, (_, at) => named[at % named.length] ?? 'node_killed');
}
