import { scrubRecords } from '../../maintenance/scrub/scrub-records.ts';
import { readConfig } from '../../node/config.ts';
import { systemClock } from '../../runtime/clock/system-clock.ts';
import { openWholeLmdb } from '../../store/lmdb/open-whole.ts';
import { exitCodes } from '../terminal/exit-codes.ts';
import { shownText } from '../terminal/shown-text.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** `ledger-trust scrub`: names every damaged record in DATA_DIR, which no node may serve. Returns the exit code. */
export async function scrub(terminal: Terminal): Promise<number> {
  const { dataDir } = readConfig({ ...terminal.env, SVC_MODE: 'development' });
  await using source = await openWholeLmdb(dataDir, () => systemClock.now());
  const damages: string[] = [];
  let damageCount = 0;
  const { ledgers, records } = scrubRecords(source.whole, (sentence) => {
    damageCount += 1;
    if (damages.length < damagesShownMax) damages.push(sentence);
  });
  for (const sentence of damages) await terminal.print(`${shownText(sentence)}\n`);
  const looked = `${records} records and the ends of ${ledgers} ledgers in ${dataDir}`;
  if (damageCount === 0) {
    await terminal.print(`${looked} are readable.\n`);
    return 0;
  }
  await terminal.print(`${damageCount} damages in ${looked}: restore a backup that is older than they are.\n`);
  return exitCodes.failed;
}

/** Further damages are only counted. */
const damagesShownMax = 10_000;
