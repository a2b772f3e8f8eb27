import { exitCodes } from '../../src/cli/terminal/exit-codes.ts';
import type { Finding } from '../../src/maintenance/scrub/finding.ts';
import type { StoreScrub } from '../../src/maintenance/scrub/scrub-store.ts';
import { placeIn, remedyOf } from './finding-places.ts';

/** Findings in the text report. `--json` prints all that the scrub kept. */
const shownMax = 100;

/** Returns the exit code of `cluster verify`: failed, incomplete, or 0 if everything was checked and is right. */
export function exitCodeOf({ findings, unchecked, outstanding }: StoreScrub): number {
  if (findings.length > 0) return exitCodes.failed;
  return unchecked.length + outstanding > 0 ? exitCodes.incomplete : 0;
}

/** Returns the result as text for people. */
export function scrubText(scrub: StoreScrub): string {
  const { ledgers, events, signatures, findings, findingCount, unchecked, outstanding, written } = scrub;
  const lines = [
    `${headline(scrub)}  ${ledgers} ledgers, ${events} events, ${signatures} signatures and seals`,
    ...findings.slice(0, shownMax).flatMap(linesOf),
  ];
  const more = findingCount - Math.min(findings.length, shownMax);
  if (more > 0) lines.push(`  ✗ and ${more} more`);
  if (written > 0) lines.push(`  + ${written} projections were missing and have been written from the logs`);
  for (const text of unchecked.slice(0, shownMax)) lines.push(`  ? ${text}`);
  if (outstanding > 0)
    lines.push(
      `  ? ${outstanding} projections of the newest batches are not there: a node that died may have left them so, and the next command to the ledger writes them; run again with --finish to have them written and to know`,
    );
  return `${lines.join('\n')}\n`;
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

/** Returns the result as JSON. */
export function scrubJson(scrub: StoreScrub): string {
  const { ledgers, events, signatures, findings, findingCount, unchecked, outstanding, written } = scrub;
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
  };
  return `${JSON.stringify(shown, null, 2)}\n`;
}
