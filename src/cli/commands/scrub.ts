import { existsSync } from 'node:fs';
import type { Finding } from '../../maintenance/scrub/finding.ts';
import { scrubRecords } from '../../maintenance/scrub/scrub-records.ts';
import { scrubTrees } from '../../maintenance/scrub/scrub-trees.ts';
import { storedAuthority } from '../../maintenance/scrub/stored-keys.ts';
import { type Config, readConfig } from '../../node/config.ts';
import { authorityKey, authorityKeyFile } from '../../node/node-keys.ts';
import { systemClock } from '../../runtime/clock/system-clock.ts';
import { publicKeyOf } from '../../service/authority/authority.ts';
import { readLog } from '../../service/log-identity/log-record.ts';
import { openWholeLmdb } from '../../store/lmdb/open-whole.ts';
import { passOverDamaged } from '../../store/unreadable-record.ts';
import { counted } from '../terminal/counted.ts';
import { exitCodes } from '../terminal/exit-codes.ts';
import { shownText } from '../terminal/shown-text.ts';
import type { Terminal } from '../terminal/terminal.ts';

/**
 * `ledger-trust scrub`: names every damaged record in DATA_DIR, which no node may serve, and every stored hash and
 * signed head that does not agree with the events. `repair` removes wrong hashes. Returns the exit code.
 */
export async function scrub(terminal: Terminal, { repair = false }: { readonly repair?: boolean } = {}) {
  const config = readConfig({ ...terminal.env, SVC_MODE: 'development' });
  const { dataDir } = config;
  const trusted = ownKeyOf(config);
  const now = () => systemClock.now();
  await using source = await openWholeLmdb(dataDir, now, { mayRemove: repair });
  const shown: string[] = [];
  const counts = { damage: 0, wrong_tile: 0, log_behind: 0 };
  const found = (kind: keyof typeof counts, sentence: string) => {
    counts[kind] += 1;
    if (shown.length < sentencesShownMax) shown.push(sentence);
  };
  const { ledgers, records } = scrubRecords(source.whole, (sentence) => found('damage', sentence));
  const { findings } = await storedAuthority(source.records, trusted === null ? [] : [{ publicKey: trusted }]);
  for (const finding of findings) if (finding.type !== 'damaged_row') found('damage', sentenceOf(finding));
  const { hashValues, signedHeads, removed } = await scrubTrees({
    ...{ ledgers: source.ledgers, trees: source.trees, now, repair },
    // A damaged record is found as a record.
    serviceName: (await passOverDamaged(readLog(source.records)))?.log?.origin ?? null,
    found: (finding) => found(kindOf(finding), sentenceOf(finding)),
  });
  for (const sentence of shown) await terminal.print(`${shownText(sentence)}\n`);
  const looked = `${counted(records, 'record')} and the ends of ${counted(ledgers, 'ledger')} in ${dataDir}`;
  const compared = `${counted(hashValues, 'tile')} and ${counted(signedHeads, 'signed head')}`;
  const { damage, wrong_tile: wrongTiles, log_behind: behind } = counts;
  const lines = [
    damage === 0
      ? `${looked} are readable.`
      : `${counted(damage, 'damage')} in ${looked}: restore a backup from before the damage.`,
    ...(trusted === null ? [notCompared] : []),
    ...(removed > 0 ? [`Removed ${counted(removed, 'tile')} with wrong hashes: nodes make them anew.`] : []),
    ...(wrongTiles > 0 ? [`wrong_tile: ${wrongTiles} of ${compared}. Remove them by \`scrub --repair\`.`] : []),
    ...(behind > 0 ? [`log_behind: ${behind} of ${counted(signedHeads, 'signed head')}. ${behindRemedy}`] : []),
    ...(wrongTiles + behind === 0 ? [`${compared} agree with the events.`] : []),
  ];
  for (const line of lines) await terminal.print(`${line}\n`);
  return damage + wrongTiles + behind === 0 ? 0 : exitCodes.failed;
}

/** The public key (base64) of the authority that this machine has. null: its private key is not here. */
function ownKeyOf(config: Config): string | null {
  const file = authorityKeyFile(config);
  return config.authorityKeyFile === null && !existsSync(file) ? null : publicKeyOf(authorityKey(file));
}

const notCompared =
  "The list of the authority's keys was not compared with the authority's key: set AUTHORITY_KEY_FILE to it.";

/** Further sentences are only counted. */
const sentencesShownMax = 10_000;

const behindRemedy =
  'Bring the missing events back from a backup, or move the store: `ledger-trust log new-origin NAME`.';

function kindOf({ type }: Finding): 'damage' | 'wrong_tile' | 'log_behind' {
  return type === 'wrong_tile' || type === 'log_behind' ? type : 'damage';
}

function sentenceOf({ ledgerId, seq, type, detail, table, key }: Finding): string {
  const ledger =
    ledgerId === null || type === 'wrong_tile' ? '' : `ledger ${ledgerId}${seq === null ? '' : ` seq ${seq}`}: `;
  const place = table === 'record' && key !== undefined ? `record: ${key}` : table;
  return `${type}  ${ledger}${detail}${place === undefined ? '' : ` (in ${place})`}`;
}
