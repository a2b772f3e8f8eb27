import { BehindLogs } from '../../src/service/log-identity/behind-logs.ts';
import { unboundedWalk } from '../../src/service/walking/walk.ts';
import type { SignedHeads } from '../../src/store/signed-heads.ts';
import type { Stores } from '../../src/store/stores.ts';
import { ledgerId } from './commands.ts';
import type { Note } from './history/notes-check.ts';
import { checkpointsOver, ledgerLog, longChain, masterLog } from './proofs-rig.ts';
import { countingBytes } from './world.ts';

/**
 * Before a raise, while it is under way, when it has resolved but nothing was signed, and when the checkpoint has left
 * the process.
 */
export const killPoints = ['before', 'during', 'after', 'answered'] as const;
type KillPoint = (typeof killPoints)[number];

/** All events that such processes write one after the other. The same ids in each process. */
export const signedChain = longChain(320, countingBytes({ drawn: 0 }));
const batchEvents = 4;
const logs = [ledgerLog, masterLog];

export function killPointOf(text: string): KillPoint {
  const point = killPoints.find((one) => one === text);
  if (point === undefined) throw new Error(`No point of a raise: ${text}`);
  return point;
}

/**
 * Goes on with the chain where the store ends, in batches, and signs checkpoints of the newest size and of an older one
 * after each batch. A line for each: `note <origin> <size> <root>`. Kills itself with SIGKILL at a point of raise
 * number `count`. The last line is `kill` then.
 */
export async function signUntilKilled(
  { ledgers, tiles, signedHeads }: Stores,
  point: KillPoint,
  count: number,
  say: (line: string) => void,
): Promise<void> {
  let raises = 0;
  const killAt = (here: KillPoint) => {
    if (here !== point || raises !== count) return;
    say('kill');
    process.kill(process.pid, 'SIGKILL');
  };
  const heads: SignedHeads = {
    get: (origin) => signedHeads.get(origin),
    raise: async (...head) => {
      raises += 1;
      killAt('before');
      const raised = signedHeads.raise(...head);
      killAt('during');
      await raised;
      killAt('after');
    },
  };
  const behind = new BehindLogs(false);
  const checkpoints = checkpointsOver(ledgers, tiles, heads, behind);
  const walk = unboundedWalk();
  const claim = await ledgers.claim(ledgerId);
  for (let next = (claim.head?.seq ?? -1) + 1; ; next += batchEvents) {
    const entries = signedChain.slice(next, next + batchEvents);
    if (entries.length === 0) throw new Error('All events are written, and the process was not killed');
    await ledgers.append(claim, entries);
    checkpoints.committed(ledgerId, entries);
    for (const log of logs) {
      const newest = await checkpoints.newestSize(log, walk);
      for (const size of newest === 0 ? [] : [newest, Math.ceil(newest / 2)]) {
        const signed = await checkpoints.checkpoint(log, size, walk);
        if (signed === null) throw new Error(`There is no checkpoint of size ${size}`);
        say(`note ${signed.origin} ${size} ${Buffer.from(signed.root).toString('base64')}`);
        killAt('answered');
      }
    }
  }
}

/** The checkpoints that such a process gave, by its lines. */
export function notesIn(lines: readonly string[], node: string): Note[] {
  return lines.flatMap((line) => {
    const [word, origin = '', size = '', root = ''] = line.split(' ');
    const log = logs.find(({ id }) => origin.endsWith(id));
    if (word !== 'note' || log === undefined) return [];
    return [{ log, node, origin, size: Number(size), root: Buffer.from(root, 'base64') }];
  });
}
