import { counted } from '../../src/cli/terminal/counted.ts';
import { exitCodes } from '../../src/cli/terminal/exit-codes.ts';
import { shownJson, shownText } from '../../src/cli/terminal/shown-text.ts';
import { type Finding, isOfProjections } from '../../src/maintenance/scrub/finding.ts';
import type { StoreScrub } from '../../src/maintenance/scrub/scrub-store.ts';
import type { ClusterScrub } from './verify-ledgers.ts';

/** Findings in the text report. `--json` prints all that the scrub kept. */
const shownMax = 100;

/** Returns the exit code of `cluster verify`: failed, incomplete, or 0 if everything was checked and is right. */
export function exitCodeOf({ findings, unchecked, outstanding }: StoreScrub): number {
  if (findings.length > 0) return exitCodes.failed;
  return unchecked.length + outstanding > 0 ? exitCodes.incomplete : 0;
}

export function scrubText(scrub: ClusterScrub): string {
  const { ledgers, events, signatures, findings, findingCount, unchecked, outstanding, written, trees } = scrub;
  const lines = [
    `${headline(scrub)}  ${ledgers} ledgers, ${events} events, ${signatures} signatures and seals${treesText(trees)}`,
    ...findings.slice(0, shownMax).flatMap(linesOf),
  ];
  const more = findingCount - Math.min(findings.length, shownMax);
  if (more > 0) lines.push(`  ✗ and ${more} more`);
  if (written > 0) lines.push(`  + ${written} projections were missing and have been written from the logs`);
  if (trees !== null && trees.removed > 0)
    lines.push(`  + ${trees.removed} wrong hashes of trees were removed: nodes make them anew from the events`);
  for (const text of unchecked.slice(0, shownMax)) lines.push(`  ? ${text}`);
  if (outstanding > 0)
    lines.push(
      `  ? ${outstanding} projections of the newest batches are not there: a node that died may have left them so, and the next command to the ledger writes them; run again with --finish to have them written and to know`,
    );
  return `${lines.map(shownText).join('\n')}\n`;
}

function treesText(trees: ClusterScrub['trees']): string {
  return trees === null
    ? ''
    : `, ${counted(trees.hashValues, 'value')} of trees, ${counted(trees.signedHeads, 'signed head')}`;
}

function linesOf(finding: Finding): string[] {
  const { table, key } = placeIn(finding);
  return [
    `  ✗ ${finding.type}  ${placeOf(finding)}${finding.detail}`,
    `      in ${table} (${key}): ${remedyOf(finding)}`,
  ];
}

function headline({ findings, unchecked, outstanding }: StoreScrub): string {
  if (findings.length > 0) return 'DAMAGED';
  return unchecked.length + outstanding > 0 ? 'INCOMPLETE' : 'GOOD';
}

function placeOf({ ledgerId, seq }: Finding): string {
  if (ledgerId === null) return '';
  return seq === null ? `ledger ${ledgerId}: ` : `ledger ${ledgerId} seq ${seq}: `;
}

export function scrubJson(scrub: ClusterScrub): string {
  const { ledgers, events, signatures, findings, findingCount, unchecked, outstanding, written, trees } = scrub;
  const shown = {
    verdict: headline(scrub).toLowerCase(),
    ledgers,
    events,
    signatures,
    finding_count: findingCount,
    findings: findings.map((finding) => {
      const { ledgerId, seq, type, detail } = finding;
      return { ledger_id: ledgerId, seq, type, detail, ...placeIn(finding), remedy: remedyOf(finding) };
    }),
    unchecked,
    projections_outstanding: outstanding,
    projections_written: written,
    ...(trees === null
      ? {}
      : {
          tree_values: trees.hashValues,
          signed_heads: trees.signedHeads,
          tree_values_removed: trees.removed,
        }),
  };
  return `${shownJson(JSON.stringify(shown, null, 2))}\n`;
}

/** Returns the Cassandra table and the key of the row that a finding is about. */
function placeIn(finding: Finding): { readonly table: string; readonly key: string } {
  const { table, key, ledgerId, seq } = finding;
  if (table !== undefined && key !== undefined) return { table, key };
  if (ledgerId === null) return { table: 'cell and line', key: 'as named' };
  const bySeq = seq === null ? '' : `, seq=${seq}`;
  return {
    table: isOfProjections(finding) ? 'cell, line and command' : 'ledger_event',
    key: `ledger_id=${ledgerId}${bySeq}`,
  };
}

const isolate =
  'let nobody write to the ledger, keep a snapshot as evidence, restore the ledger elsewhere from a backup and compare';

/** A deletion hides what is written behind it with an older time, as all cells are. */
const dropped = 'have Cassandra drop the deletion ("Cells that are dated wrongly" in docs/operations.md)';

/** Returns what an operator should do about a finding: a clause to print. */
function remedyOf({ type, table }: Finding): string {
  switch (type) {
    case 'projection_missing':
      return `run again with --finish, which writes it from the log; if it is missing then too, it was deleted by hand: ${dropped}, then run again with --finish`;
    case 'projection_wrong':
    case 'projection_extra':
      return table === 'line' || table === 'command' || table === 'scope_bucket'
        ? 'find out who wrote it, delete the row, and run again with --finish'
        : `find out who wrote it and delete the row, of a cell with USING TIMESTAMP and its writetime; of a cell, ${dropped}; then run again with --finish`;
    case 'wrong_snapshot':
      return `delete the row: nodes rebuild the state from the log, and keep a snapshot again when Cassandra has dropped the deletion; find out who wrote it`;
    case 'damaged_row':
      return `restore the row from a backup; a hint, or a row beside a log, may be deleted instead: nodes and --finish write it again, a cell, a snapshot or a hint when Cassandra has dropped the deletion`;
    case 'wrong_writetime':
      return `find out who wrote it; stop the nodes, delete it with USING TIMESTAMP and the time that it has, ${dropped}, and write it again: cells and lines by --finish, rows of ledger_event, record, fact and signed_head from a backup`;
    case 'not_permitted':
    case 'closed':
    case 'dated_ahead':
    case 'contradiction':
      return `no node of this service has decided it so: ${isolate}`;
    case 'invalid_authority_key':
      return 'restore the record from a backup, or confirm its keys (`cluster confirm-authority`) if a version before 0.2.0 wrote it last; check seals under a trust anchor that was kept elsewhere (--authority), and find out who changed the record';
    case 'invalid_log_key':
      return 'restore the record from a backup, and find out who changed it: no node starts with it';
    case 'wrong_tile':
      return 'run again with --repair, which removes it: nodes make it anew from the events';
    case 'log_behind':
      return 'nothing is signed for the log: bring the missing events back, or stop all nodes and run `cluster log new-origin NAME`';
    case 'unchecked_ledger':
      return 'mend the other findings of the ledger first, then run again';
    default:
      return isolate;
  }
}
