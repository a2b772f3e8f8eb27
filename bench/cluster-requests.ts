import { closeSync, openSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { runProcess } from './child.ts';
import { LaneWriter, type RequestFile } from './request-file.ts';
import { keyCount, type Setting } from './setting.ts';
import { laneSigner } from './signing.ts';
import { requestOf } from './wire.ts';

/** The signed requests for one node: those of the keys that stream to it. */
export interface NodeRequests {
  readonly file: RequestFile;
  /** Places of these keys in the setting, in the order of the lanes of the file. */
  readonly keys: readonly number[];
}

/** Lanes that a process signs. Plain data: it goes to that process as JSON. */
export interface ClusterSigningJob {
  readonly setting: Setting;
  /** Names the run in its idempotency keys. */
  readonly run: string;
  readonly lanes: readonly { readonly key: number; readonly file: RequestFile; readonly lane: number }[];
}

/** Signs the requests of a run on all cores: keys alternate between nodes, so each node gets a part of every ledger. */
export async function signForNodes(
  setting: Setting,
  laneRecords: number,
  nodeCount: number,
  workDir: string,
): Promise<NodeRequests[]> {
  const run = `cluster-${setting.ledgers.length}`;
  const recordBytes = requestOf('stream', laneSigner(setting, 0, run, keyCount)(0)).length;
  const nodes = Array.from({ length: nodeCount }, (_, node) => {
    const keys = setting.keys.map((__, key) => key).filter((key) => key % nodeCount === node);
    const path = join(workDir, `${run}-node-${node}.requests`);
    closeSync(openSync(path, 'w'));
    return { keys, file: { path, recordBytes, lanes: keys.length, laneRecords } };
  });
  const lanes = nodes.flatMap(({ keys, file }) => keys.map((key, lane) => ({ key, file, lane })));
  const processes = availableParallelism();
  await Promise.all(
    Array.from({ length: processes }, (_, process) => {
      const own = lanes.filter((__, at) => at % processes === process);
      return runProcess<ClusterSigningJob, object>('cluster-signing-process.ts', { setting, run, lanes: own });
    }),
  );
  return nodes;
}

/** Signs the lanes of a job and writes their requests. */
export function signClusterLanes({ setting, run, lanes }: ClusterSigningJob): void {
  for (const { key, file, lane } of lanes) {
    const writer = new LaneWriter(file, lane);
    const make = laneSigner(setting, key, run, keyCount);
    for (let at = 0; at < file.laneRecords; at++) writer.write(requestOf('stream', make(at)));
    writer.close();
  }
}
