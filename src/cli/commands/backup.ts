import { readConfig } from '../../node/config.ts';
import { authorityKeyName, logKeyName, secretsKeyName } from '../../node/node-keys.ts';
import { backupLmdb, type WatchCopy } from '../../store/lmdb/backup.ts';
import { progressBar } from '../terminal/progress-bar.ts';
import type { Terminal } from '../terminal/terminal.ts';

const barSteps = 1_000;
const lookEveryMs = 100;

/**
 * `ledger-trust backup DIR`: copies the data of DATA_DIR, and the keys that the node made for itself. Returns a
 * sentence for the user. Throws StartError with a sentence that says what to correct.
 */
export async function backup(terminal: Terminal, target: string): Promise<string> {
  const { dataDir } = readConfig({ ...terminal.env, SVC_MODE: 'development' });
  const watch: WatchCopy = async (copied, share) => {
    using bar = await progressBar(terminal, '{bar} {percentage} %', barSteps);
    const timer = setInterval(() => bar.set(Math.round(barSteps * share())), lookEveryMs);
    await copied.finally(() => clearInterval(timer));
    bar.set(barSteps);
  };
  const keys = await backupLmdb(dataDir, target, [authorityKeyName, secretsKeyName, logKeyName], watch);
  const kept =
    keys.length === 0 ? '' : ` with the keys ${new Intl.ListFormat('en-GB').format(keys)}: keep it as secret as these`;
  return `Copied ${dataDir} to ${target}${kept}.`;
}
