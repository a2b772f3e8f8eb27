import { readConfig } from '../../node/config.ts';
import { authorityKeyName, secretsKeyName } from '../../node/node-keys.ts';
import { backupLmdb, type WatchCopy } from '../../store/lmdb/backup.ts';
import { progressBar } from '../terminal/progress-bar.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Steps of the progress bar, which shows a percentage. */
const barSteps = 1_000;
const lookEveryMs = 100;

/**
 * `ledger-trust backup DIR`: copies the data of DATA_DIR, and the keys that the node made for itself. The node may be
 * running. The copy is a data directory: start a node with DATA_DIR=DIR. Returns a sentence for the user. Throws
 * StartError with a sentence that says what to correct.
 */
export async function backup(terminal: Terminal, target: string): Promise<string> {
  const { dataDir } = readConfig({ ...terminal.env, SVC_MODE: 'development' });
  const watch: WatchCopy = async (copied, share) => {
    const bar = await progressBar(terminal, '{bar} {percentage} %', barSteps);
    const show = (): void => bar.set(Math.round(barSteps * share()));
    const timer = setInterval(show, lookEveryMs);
    try {
      await copied;
      bar.set(barSteps);
    } finally {
      clearInterval(timer);
      bar.stop();
    }
  };
  const keys = await backupLmdb(dataDir, target, [authorityKeyName, secretsKeyName], watch);
  const kept = keys.length === 0 ? '' : ` with the keys ${keys.join(' and ')}: keep it as secret as these`;
  return `Copied ${dataDir} to ${target}${kept}.`;
}
