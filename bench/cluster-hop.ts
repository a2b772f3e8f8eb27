import { createPrivateKey } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LocalNode } from '../cluster/local/node.ts';
import { createClient, type LedgerTrustClient, signerFromPrivateKey } from '../src/client/index.ts';
import { type BenchCluster, ownerAndOther } from './cluster-processes.ts';
import { payloadOf } from './payload.ts';
import { type BenchKey, makeSetting } from './setting.ts';
import { type Percentiles, percentiles, rounded } from './sum.ts';

const pairs = 400;
/** Not counted: connections, caches, and who owns the shard have to be found first. */
const warmUpPairs = 60;
/** Between two calls, so that none waits for another. */
const pauseMs = 10;

interface HopReport {
  readonly pairs: number;
  /** The call as sent to the node that owns the ledger, and to another one. */
  readonly owner: Percentiles;
  readonly other: Percentiles;
  /** Median of the differences within the pairs; difference of the two p99. */
  readonly added: Percentiles;
}

/** The cost of a call to another node than the owner: unary gRPC appends, one at a time, to both alternately. */
export async function measureHop(cluster: BenchCluster): Promise<HopReport> {
  const [first] = cluster.nodes;
  if (first === undefined) throw new Error('there are no nodes');
  const { keys, ledgers } = await makeSetting(first.base, 1);
  const [key, ledger] = [keys[0], ledgers[0]];
  const master = ledger?.masters[0];
  if (key === undefined || ledger === undefined || master === undefined) throw new Error('there is no master');
  const { owner, other } = await ownerAndOther(cluster.nodes, ledger.ledgerId);
  await using atOwner = grpcClient(owner, key);
  await using atOther = grpcClient(other, key);
  const append = async (client: LedgerTrustClient, index: number): Promise<number> => {
    await sleep(pauseMs);
    const began = performance.now();
    await client.appendEvent({ uuid: master.masterId, eventType: 'HOP_MEASURED', payload: { ...payloadOf(index) } });
    return performance.now() - began;
  };
  const times: { readonly owner: number; readonly other: number }[] = [];
  for (let pair = 0; pair < warmUpPairs + pairs; pair++) {
    const index = 2 * pair;
    // Which of the two comes first changes, so that neither always follows the other.
    const time =
      pair % 2 === 0
        ? { owner: await append(atOwner, index), other: await append(atOther, index + 1) }
        : { other: await append(atOther, index), owner: await append(atOwner, index + 1) };
    if (pair >= warmUpPairs) times.push(time);
  }
  const ofOwner = percentiles(times.map((time) => time.owner));
  const ofOther = percentiles(times.map((time) => time.other));
  const differences = percentiles(times.map((time) => time.other - time.owner));
  const added = { p50Ms: differences.p50Ms, p99Ms: rounded(ofOther.p99Ms - ofOwner.p99Ms) };
  return { pairs, owner: ofOwner, other: ofOther, added };
}

function grpcClient(node: LocalNode, { apiKey, kid, privateKey }: BenchKey): LedgerTrustClient {
  const signer = signerFromPrivateKey(createPrivateKey(privateKey), kid);
  return createClient({
    baseUrl: node.base,
    grpcUrl: `http://${node.grpcAddress}`,
    transport: 'grpc',
    apiKey,
    signer,
    attemptsMax: 1,
  });
}
