import type { IncompleteReason, Verification } from '../client/verification.ts';
import { shownJson, shownText } from './shown-text.ts';

/** Issues shown to people; `--json` shows all. */
const ISSUES_SHOWN_MAX = 20;

/** Where the keys came from, in words. */
export interface KeyOrigin {
  readonly text: string;
  /** The keys came in the same file as the events, so that whoever made the one may have made the other. */
  readonly sameFile: boolean;
}

/** The result in words, for people. */
export function reportText(result: Verification, origin: KeyOrigin): string {
  const { checked, head } = result;
  const lines = [
    `${result.verdict.toUpperCase()}  ${headline(result)}`,
    `  events      ${checked.events}${subject(result)}`,
    `  hashes      ${checked.contentHashes} contents and ${checked.chainHashes} chain hashes of ${checked.events} events recomputed`,
    `  signatures  ${checked.actorSignatures} of actors and ${checked.authoritySeals} seals of the authority verified`,
    `  keys        ${origin.text}`,
  ];
  if (head !== null) lines.push(`  head        seq ${head.seq}, hash ${head.hash}`);
  for (const issue of result.issues.slice(0, ISSUES_SHOWN_MAX)) {
    lines.push(`  ✗ ${issue.type}  event ${issue.eventId}: ${issue.detail}`);
  }
  const more = result.issues.length - ISSUES_SHOWN_MAX;
  if (more > 0) lines.push(`  ✗ and ${more} more: see --json`);
  for (const reason of result.incomplete) {
    lines.push(`  ? ${reason.type}  ${places(reason)}${reason.detail}`);
  }
  if (origin.sameFile) {
    lines.push(
      '  ! The keys are from the file itself: check them against the resolver of the service with --resolver URL.',
    );
  }
  return `${lines.map(shownText).join('\n')}\n`;
}

/** What the events are of, where there are any or the file says it. */
function subject({ ledgerId, masterId }: Verification): string {
  const master = masterId === null ? '' : ` of master ${masterId}`;
  return ledgerId === null ? master : `${master} of ledger ${ledgerId}`;
}

/** How often it holds, where that is not plain. */
function places({ type, count }: IncompleteReason): string {
  if (type === 'middle_unknown') return count === 1 ? '' : `${count} gaps, the first: `;
  return count === 0 ? '' : `${count} of the events: `;
}

function headline(result: Verification): string {
  switch (result.verdict) {
    case 'valid':
      return 'everything was recomputed and verified';
    case 'incomplete':
      return 'nothing wrong was found, and not everything could be checked';
    case 'invalid':
      return `${result.issues.length} things are wrong`;
  }
}

/** The result as JSON with the names of the API. */
export function reportJson(result: Verification, origin: KeyOrigin): string {
  const { checked } = result;
  const shown = {
    verdict: result.verdict,
    verified: result.verified,
    ledger_id: result.ledgerId,
    master_id: result.masterId,
    checked: {
      events: checked.events,
      content_hashes: checked.contentHashes,
      chain_hashes: checked.chainHashes,
      actor_signatures: checked.actorSignatures,
      authority_seals: checked.authoritySeals,
    },
    issues: result.issues.map(({ eventId, type, detail }) => ({ event_id: eventId, type, detail })),
    incomplete: result.incomplete.map(({ type, detail, eventId, count }) => ({
      type,
      detail,
      event_id: eventId,
      count,
    })),
    head: result.head,
    keys_from: origin.text,
  };
  return `${shownJson(JSON.stringify(shown, null, 2))}\n`;
}
