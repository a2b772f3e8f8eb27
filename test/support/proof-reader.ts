import { expect } from 'vitest';
import { decodeBase64 } from '../../src/domain/keys/base64.ts';
import { type Checkpoint, verifyCheckpoint } from '../../src/domain/log/checkpoint.ts';
import { logKey } from '../../src/domain/log/log-key.ts';
import { verifyProofFile } from '../../src/domain/log/proof-file.ts';
import { isConsistent } from '../../src/domain/log/tree-proof.ts';
import { grpcClient } from './grpc-client.ts';
import { eventsOf, type Master, newMaster, newOrder, type Order } from './parties.ts';
import { done, expectRefused, type Fields, type RestAnswer, rest } from './parties-rest.ts';
import { sendAll, streamed } from './parties-stream.ts';
import type { RunningTestNode } from './running-node.ts';

/** A ledger with a master. */
export interface ProvenWorld {
  readonly order: Order;
  readonly master: Master;
}

export async function makeProvenWorld(node: RunningTestNode, events: number): Promise<ProvenWorld> {
  const order = await newOrder(node.base, { keyed: false });
  const master = await newMaster(order);
  await appendMany(node, { order, master }, events);
  return { order, master };
}

export async function appendMany(node: RunningTestNode, { order, master }: ProvenWorld, count: number): Promise<void> {
  const client = grpcClient(node.grpcAddress);
  const requests = Array.from({ length: count }, (_, n) => streamed(master, order.buyer, n, { n }));
  const outcomes = await sendAll(client, order.buyer, requests);
  client.close();
  expect(outcomes.filter(({ code }) => code !== null)).toEqual([]);
}

/** What a reader sees of a node's proofs. Each checkpoint and proof is verified. */
export function proofReader(node: Pick<RunningTestNode, 'base'>, { order, master }: ProvenWorld, name: string) {
  const ledger = `/v1/ledgers/${order.ledgerId}`;
  const origins = { ledger: `${name}/ledgers/${order.ledgerId}`, master: `${name}/masters/${master.uuid}` };
  const get = (path: string) => rest(node.base, 'GET', path, order.buyer);
  const keys = async () => {
    const anchor = await done(node.base, 'GET', '/.well-known/svc-authority');
    return anchor.rows('log.keys').map(({ public_key }) => logKey(String(public_key)) ?? expect.fail('no key'));
  };
  const paths = {
    ledger: `${ledger}/checkpoint`,
    master: `/v1/traceledger/master/${master.uuid}/checkpoint`,
    ledgerInclusion: `${ledger}/proof/inclusion?seq=1`,
    ledgerConsistency: `${ledger}/proof/consistency?from=2`,
    masterInclusion: `/v1/traceledger/master/${master.uuid}/proof/inclusion?master_seq=1`,
    masterConsistency: `/v1/traceledger/master/${master.uuid}/proof/consistency?from=2`,
  };
  return {
    get,
    refusals: (): Promise<RestAnswer[]> => Promise.all(Object.values(paths).map(get)),
    async checkpoint(kind: 'ledger' | 'master', size?: number): Promise<Checkpoint> {
      const { body } = await done(
        node.base,
        'GET',
        `${paths[kind]}${size === undefined ? '' : `?size=${size}`}`,
        order.buyer,
      );
      return verifyCheckpoint(String(body.checkpoint), origins[kind], await keys());
    },
    /** Verifies that events of the ledger are in its newest tree. */
    async included(seqs: readonly number[]): Promise<void> {
      const events = await eventsOf(node.base, order.buyer, order.ledgerId);
      for (const seq of seqs) {
        const { body } = await done(node.base, 'GET', `${ledger}/proof/inclusion?seq=${seq}`, order.buyer);
        const record = Buffer.from(String(events[seq]?.hash), 'hex');
        verifyProofFile(String(body.proof), { index: seq, record, origin: origins.ledger, keys: await keys() });
      }
    },
    /** Whether the log still contains what the reader has kept. */
    async agreesWith(kept: Checkpoint): Promise<boolean> {
      const { body } = await done(node.base, 'GET', `${ledger}/proof/consistency?from=${kept.size}`, order.buyer);
      const newer = verifyCheckpoint(String(body.checkpoint_to), origins.ledger, await keys());
      const hashes = (body.hashes as string[]).map((hash) => decodeBase64(hash, 32) ?? Buffer.alloc(0));
      const sizes = { oldSize: kept.size, newSize: newer.size };
      return isConsistent({ ...sizes, oldRoot: kept.root, newRoot: newer.root, hashes });
    },
  };
}

export function expectUnavailable(answers: readonly RestAnswer[], reason: string): void {
  for (const answer of answers) {
    expectRefused(answer, 503, 'unavailable');
    expect([answer.raw, (answer.body.error as Fields).details]).toEqual([
      answer.raw,
      expect.objectContaining({ reason }),
    ]);
  }
}
