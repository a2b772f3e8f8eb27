import { closeSync, openSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { runForked } from './forked.ts';
import type { Transport } from './options.ts';
import { type RequestFile, RequestWriter } from './request-file.ts';
import type { Setting } from './setting.ts';
import { eventSigner } from './signing.ts';
import { requestOf } from './wire.ts';

/** The signed requests for one node: those of the keys that stream to it. */
export interface NodeRequests {
  readonly file: RequestFile;
  /** Places of these keys in the setting, in the order of the signers of the file. */
  readonly keys: readonly number[];
}

/** Requests of a run. */
interface Requests {
  readonly setting: Setting;
  readonly transport: Transport;
  /** Names the run in its idempotency keys. */
  readonly run: string;
}

/** Signers whose requests a process signs. Plain data: it goes to that process as JSON. */
export interface SigningJob extends Requests {
  readonly signers: readonly { readonly key: number; readonly file: RequestFile; readonly signer: number }[];
}

/**
 * Signs the requests of a run on all cores, into a file in `workDir` for each node. Keys alternate between nodes, so
 * each node gets a part of every ledger.
 */
export async function signForNodes(
  requests: Requests,
  recordsPerSigner: number,
  nodeCount: number,
  workDir: string,
): Promise<NodeRequests[]> {
  const { setting, transport, run } = requests;
  const recordBytes = requestOf(transport, eventSigner(setting, 0, run)(0)).length;
  const nodes = Array.from({ length: nodeCount }, (_, node) => {
    const keys = setting.keys.map((__, key) => key).filter((key) => key % nodeCount === node);
    const path = join(workDir, `${run}-node-${node}.requests`);
    closeSync(openSync(path, 'w'));
    return { keys, file: { path, recordBytes, signers: keys.length, recordsPerSigner } };
  });
  const signers = nodes.flatMap(({ keys, file }) => keys.map((key, signer) => ({ key, file, signer })));
  const processes = availableParallelism();
  await Promise.all(
    Array.from({ length: processes }, (_, process) => {
      const own = signers.filter((__, at) => at % processes === process);
      return runForked<SigningJob, object>('signing-process.ts', { ...requests, signers: own });
    }),
  );
  return nodes;
}

/** Signs the requests of a job and writes them into their files. */
export function signRequests({ setting, transport, run, signers }: SigningJob): void {
  for (const { key, file, signer } of signers) {
    const writer = new RequestWriter(file, signer);
    const make = eventSigner(setting, key, run);
    for (let at = 0; at < file.recordsPerSigner; at++) writer.write(requestOf(transport, make(at)));
    writer.close();
  }
}
