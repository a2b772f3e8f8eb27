import { unboundedWalk } from '../../src/service/walking/walk.ts';
import type { SignedHeads } from '../../src/store/signed-heads.ts';
import type { Stores } from '../../src/store/stores.ts';
import { ledgerId } from './commands.ts';
import type { Note } from './history/notes-check.ts';
import { checkpointsOver, ledgerLog, longChain, masterLog } from './proofs-rig.ts';

/** Before a raise, while it is under way, and when it has resolved but nothing was signed. */
export const killPoints = ['before', 'during', 'after'] as const;
export type KillPoint = (typeof killPoints)[number];

/** All events that such processes write one after the other. */
export const signedChain = longChain(320);
const batchEvents = 4;
const logs = [ledgerLog, masterLog];

export function killPointOf(text: string): KillPoint {
  const point = killPoints.find((one) => one === text);
  if (point === undefined) throw new Error(`No point of a raise: ${text}`);
  return point;
}

/**
 * Goes on with the chain where the store ends, in batches, and signs checkpoints of the newest size and of an older one
 * after each batch. A line for each: `note <kind> <size> <root>`. `behind <origin>` if a log is found to be behind.
 * Kills itself with SIGKILL at a point of raise number `count`. The last line is `kill` then.
 */
export async function signUntilKilled(
  { ledgers, tiles, signedHeads }: Stores,
  point: KillPoint,
  count: number,
  say: (line: string) => void,
): Promise<void> {
  const checkpoints = checkpointsOver(
    { ledgers, tiles, signedHeads: killedAt(signedHeads, point, count, say) },
    {
      behind: (origin, isBehind) => {
        if (isBehind) say(`behind ${origin}`);
      },
    },
  );
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
        say(`note ${log.kind} ${size} ${Buffer.from(signed.root).toString('base64')}`);
      }
    }
  }
}

/** The checkpoints that such a process gave, by its lines. */
export function notesIn(lines: readonly string[], node: string): Note[] {
  return lines.flatMap((line) => {
    const [word, kind, size = '', root = ''] = line.split(' ');
    const log = logs.find((one) => one.kind === kind);
    if (word !== 'note' || log === undefined) return [];
    return [{ log, node, origin: log.id, size: Number(size), root: Buffer.from(root, 'base64') }];
  });
}

function killedAt(heads: SignedHeads, point: KillPoint, count: number, say: (line: string) => void): SignedHeads {
  let raises = 0;
  const killAt = (here: KillPoint) => {
    if (here !== point || raises !== count) return;
    say('kill');
    process.kill(process.pid, 'SIGKILL');
  };
  return {
    get: (origin) => heads.get(origin),
    raise: async (...head) => {
      raises += 1;
      killAt('before');
      const raised = heads.raise(...head);
      killAt('during');
      await raised;
      killAt('after');
    },
  };
}
