import { setTimeout as delay } from 'node:timers/promises';
import { watchHost } from './host-watch.ts';
import { isNightly } from './nightly.ts';
import { furtherSignalMs, type NodeProcess } from './node-process.ts';

/** More lines than a pipe holds, which is some 300. */
const manyCalls = isNightly ? 1_500 : 700;

/** Calls of a node with LOG_LEVEL=info that leave a line each. */
export async function leaveLines({ base }: Pick<NodeProcess, 'base'>, count = manyCalls): Promise<void> {
  for (let left = count; left > 0; left -= 50)
    await Promise.all(Array.from({ length: 50 }, async () => (await fetch(`${base}/v1/nothing`)).arrayBuffer()));
}

/**
 * Sends the signals, each as a request of its own. Resolves when the node has ended, which reading what it said must
 * not bring about. `tookMs` counts from the last signal.
 */
export async function endUnread({ child }: Pick<NodeProcess, 'child'>, ...signals: readonly NodeJS.Signals[]) {
  const host = watchHost();
  let begun = 0;
  const exit = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  for (const [index, signal] of signals.entries()) {
    if (index > 0) await delay(furtherSignalMs);
    begun = performance.now();
    child.kill(signal);
  }
  const code = await exit;
  return { code, tookMs: performance.now() - begun, bound: (ms: number) => host.bound(ms) };
}

/** How many lines the node dropped, as it says itself. */
export async function droppedLines(node: NodeProcess): Promise<number> {
  const text = await (await fetch(`${node.opsBase}/metrics`)).text();
  return Number(/^svc_log_lines_dropped_total (\d+)$/m.exec(text)?.[1]);
}
