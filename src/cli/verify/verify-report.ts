import type {
  CheckpointCoverage,
  IncompleteReason,
  IncompleteType,
  Verification,
} from '../../client/verify/verification.ts';
import { ISSUES_MAX } from '../../client/verify/verifying.ts';
import { counted } from '../terminal/counted.ts';
import { shownJson, shownText } from '../terminal/shown-text.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** How many issues the text shows. `--json` shows all that were kept. */
const ISSUES_SHOWN_MAX = 20;

/** What each reason leaves open. The text follows "not verified:" in the first line. */
const notVerified: { readonly [type in IncompleteType]: string } = {
  actor_keys_untrusted: 'whose keys these are (give --resolver URL)',
  authority_keys_untrusted: 'whose keys these are (give --resolver URL)',
  actor_keys_unknown: 'signatures, for lack of their keys',
  authority_keys_unknown: 'seals, for lack of the keys of the authority',
  start_unknown: 'what stands before the first event',
  middle_unknown: 'what is missing in between',
  end_unknown: 'what follows',
  order_unsigned: 'the order and the dates of the last events',
  content_unchecked: 'the content of some events',
  hash_unchecked: 'the tie of some events to the ledger and to their seals',
  checkpoint_unchecked: 'the checkpoint, for lack of events that it covers',
};

export interface KeyOrigin {
  /** The origin in words. */
  readonly text: string;
  readonly isResolver: boolean;
  /** That of the trust anchor: `1` in development. null if there is no trust anchor. */
  readonly phase: string | null;
}

const keptOnly = `, which shows the first ${ISSUES_MAX}`;
const DEVELOPMENT_PHASE = '1';
const colors = { valid: 'green', incomplete: 'yellow', invalid: 'red' } as const;

/** The result as text, for people. `colored` colours the verdict. */
export function reportText(result: Verification, origin: KeyOrigin, colored: Terminal['colored']): string {
  const { checked, head, checkpoint, checkpoints } = result;
  const lines = [
    headline(result),
    `  events      ${checked.events}${subject(result)}`,
    `  hashes      ${checked.contentHashes} contents and ${checked.chainHashes} chain hashes of ${checked.events} events recomputed`,
    `  signatures  ${checked.actorSignatures} of actors and ${checked.authoritySeals} seals of the authority verified`,
    `  keys        ${origin.text}`,
  ];
  for (const { size, origin: log } of checkpoints.filter(({ verified }) => verified))
    lines.push(`  checkpoint  of ${counted(size, 'event')} in ${log}: ${rootText(result)}`);
  if (head !== null) lines.push(`  head        seq ${head.seq}, hash ${head.hash}`);
  for (const issue of result.issues.slice(0, ISSUES_SHOWN_MAX)) {
    lines.push(`  ✗ ${issue.type}  event ${issue.eventId}: ${issue.detail}`);
  }
  const more = result.issueCount - ISSUES_SHOWN_MAX;
  if (more > 0)
    lines.push(`  ✗ and ${more} more: see --json${result.issueCount > result.issues.length ? keptOnly : ''}`);
  for (const reason of result.incomplete) {
    lines.push(`  ? ${reason.type}  ${places(reason)}${reason.detail}`);
  }
  if (checkpoint !== null && checkpoint.notCovered > 0)
    lines.push(
      `  ! The last ${counted(checkpoint.notCovered, 'event')} came after the checkpoint, which does not cover them.`,
    );
  if (checked.authoritySeals > 0 && origin.phase === DEVELOPMENT_PHASE)
    lines.push('  ! The service runs in development mode: it seals with a key that it made for itself.');
  if (result.verdict === 'incomplete') lines.push(...advice(result, origin));
  const verdict = colored(colors[result.verdict], result.verdict.toUpperCase());
  return `${verdict}  ${lines.map(shownText).join('\n')}\n`;
}

function advice({ incomplete }: Verification, { isResolver }: KeyOrigin): string[] {
  const has = (...types: IncompleteType[]) => incomplete.some(({ type }) => types.includes(type));
  if (has('actor_keys_untrusted', 'authority_keys_untrusted'))
    return [
      '  ! The keys come from the file itself: who makes up a file can make up its keys. To know whose they are, verify',
      '    with --resolver URL (the service), or with --keys FILE and --authority FILE that you got on another way.',
      '    If you made the file yourself, add --trust-file-keys.',
    ];
  if (isResolver && has('authority_keys_unknown'))
    return [
      '  ! This service publishes no key of its authority, as in development mode: its seals cannot be verified.',
    ];
  if (has('actor_keys_unknown', 'authority_keys_unknown'))
    return ['  ! Keys are missing: give --resolver URL (the service), or --keys FILE and --authority FILE.'];
  if (has('order_unsigned') && !has('start_unknown', 'middle_unknown'))
    return ['  ! The service signs order and dates by a checkpoint: export anew, or give one by --checkpoint FILE.'];
  return [];
}

/** The root is that of the hashes in the file. It is that of the events only if each hash was recomputed from them. */
function rootText({ checked, masterId }: Verification): string {
  const { events, contentHashes, chainHashes } = checked;
  const isRecomputed = contentHashes === events && (masterId !== null || chainHashes === events);
  return isRecomputed ? 'root recomputed' : 'root of the hashes in the file, not all of which could be recomputed';
}

function subject({ ledgerId, masterId }: Verification): string {
  const master = masterId === null ? '' : ` of master ${masterId}`;
  return ledgerId === null ? master : `${master} of ledger ${ledgerId}`;
}

function places({ type, count }: IncompleteReason): string {
  if (type === 'middle_unknown') return count === 1 ? '' : `${count} gaps, the first: `;
  return count === 0 || type === 'order_unsigned' ? '' : `${count} of the events: `;
}

/** The first line behind the verdict: what was verified, then what was not. */
function headline(result: Verification): string {
  if (result.verdict === 'invalid') {
    return counted(result.issueCount, 'problem');
  }
  const verified = verifiedParts(result).join(', ');
  if (result.verdict === 'valid') return `everything was recomputed and verified: ${verified}`;
  const isOpen = new Set(result.incomplete.map(({ type }) => notVerified[type]));
  const open = Object.values(notVerified).filter((what) => isOpen.delete(what));
  return `${verified}; not verified: ${open.join('; ')}`;
}

function verifiedParts({ checked, incomplete }: Verification): string[] {
  const { events, actorSignatures, authoritySeals, contentHashes, chainHashes } = checked;
  const isOfKeys = ({ type }: IncompleteReason) => type.includes('_keys_');
  const isWhole = events > 0 && contentHashes === events && chainHashes === events && incomplete.every(isOfKeys);
  return [
    counted(events, 'event'),
    counted(actorSignatures, 'signature'),
    ...(authoritySeals > 0 ? [counted(authoritySeals, 'seal')] : []),
    ...(isWhole ? ['chain whole'] : []),
  ];
}

/** The result as JSON with field names in the style of the API. */
export function reportJson(result: Verification, origin: KeyOrigin): string {
  const { checked, checkpoint, checkpoints } = result;
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
    issue_count: result.issueCount,
    issues: result.issues.map(({ eventId, type, detail }) => ({ event_id: eventId, type, detail })),
    incomplete: result.incomplete.map(({ type, detail, eventId, count }) => ({
      type,
      detail,
      event_id: eventId,
      count,
    })),
    checkpoint: checkpoint === null ? null : coverageJson(checkpoint),
    checkpoints: checkpoints.map(coverageJson),
    head: result.head,
    keys_from: origin.text,
    authority_phase: origin.phase,
  };
  return `${shownJson(JSON.stringify(shown, null, 2))}\n`;
}

function coverageJson({ origin, size, verified, notCovered }: CheckpointCoverage): object {
  return { origin, size, verified, not_covered: notCovered };
}
