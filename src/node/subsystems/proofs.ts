import type { Registry } from 'prom-client';
import { metricsIn } from '../../runtime/telemetry/metrics.ts';
import type { LogIdentity } from '../../service/log-identity/log-identity.ts';
import { CertainHeads } from '../../service/proofs/certain-heads.ts';
import { Checkpoints } from '../../service/proofs/checkpoints.ts';
import { LogRows } from '../../service/proofs/log-rows.ts';
import { LogTrees } from '../../service/proofs/log-trees.ts';
import { onUnreadable } from '../../store/unreadable-record.ts';
import type { NodeContext } from './context.ts';

interface NodeCheckpoints extends Disposable {
  readonly checkpoints: Checkpoints;
}

export function createCheckpoints(node: NodeContext, signer: LogIdentity): NodeCheckpoints {
  const { ledgers, tiles, signedHeads, clock, log, metrics } = node;
  const { signed, written, refused } = meterProofs(metrics.registry);
  const stop = onUnreadable(({ kind }) => {
    if (kind === 'tile') refused.inc();
  });
  const rows = new LogRows(ledgers);
  const meter = {
    tilesWritten: (count: number) => written.inc(count),
    buildingFailed: (origin: string, error: unknown) =>
      log.warn({ err: error, origin }, 'making the tree of a log failed: the next proof that needs it tries again'),
  };
  const checkpoints = new Checkpoints({
    store: ledgers,
    heads: signedHeads,
    certainHeads: new CertainHeads(ledgers, clock),
    rows,
    trees: new LogTrees({ tiles, rows, meter }),
    signer,
    clock,
    meter: { checkpointSigned: (kind) => signed.inc({ kind }) },
  });
  return { checkpoints, [Symbol.dispose]: stop };
}

export function meterProofs(registry: Registry) {
  const { counter } = metricsIn(registry);
  return {
    signed: counter({
      name: 'svc_checkpoints_signed_total',
      help: 'Checkpoints that this node has signed, by kind of log.',
      labelNames: ['kind'],
    }),
    written: counter({
      name: 'svc_tiles_written_total',
      help: 'Tiles of 256 leaves that this node has made from events and stored.',
    }),
    refused: counter({
      name: 'svc_tiles_refused_total',
      help: 'Stored hashes of trees that did not fit their places, and were not used.',
    }),
  };
}
