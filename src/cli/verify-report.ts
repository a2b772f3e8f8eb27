import type { IncompleteReason, IncompleteType, Verification } from '../client/verification.ts';
import { shownJson, shownText } from './shown-text.ts';

/** Issues shown to people; `--json` shows all. */
const ISSUES_SHOWN_MAX = 20;

/** What a reason leaves open, as it stands behind "not verified:" in the first line. */
const notVerified: { readonly [type in IncompleteType]: string } = {
  actor_keys_untrusted: 'whose keys these are',
  authority_keys_untrusted: 'whose keys these are',
  actor_keys_unknown: 'signatures, for lack of their keys',
  authority_keys_unknown: 'seals, for lack of the keys of the authority',
  start_unknown: 'what stands before the first event',
  middle_unknown: 'what is missing in between',
  end_unknown: 'what follows',
  content_unchecked: 'some hashes, whose event before is not there',
  hash_unchecked: 'some hashes, whose event before is not there',
};

/** The result in words, for people; `keysFrom` says where the keys come from. */
export function reportText(result: Verification, keysFrom: string): string {
  const { checked, head } = result;
  const lines = [
    `${result.verdict.toUpperCase()}  ${headline(result)}`,
    `  events      ${checked.events}${subject(result)}`,
    `  hashes      ${checked.contentHashes} contents and ${checked.chainHashes} chain hashes of ${checked.events} events recomputed`,
    `  signatures  ${checked.actorSignatures} of actors and ${checked.authoritySeals} seals of the authority verified`,
    `  keys        ${keysFrom}`,
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
  if (hasUntrustedKeys(result)) {
    lines.push(
      '  ! The keys come from the file itself: who makes up a file can make up its keys. To know whose they are, verify',
      '    with --resolver URL (the service), or with --keys FILE and --authority FILE that you got on another way.',
      '    If you made the file yourself, add --trust-file-keys.',
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

function hasUntrustedKeys({ incomplete }: Verification): boolean {
  return incomplete.some(({ type }) => type.endsWith('_keys_untrusted'));
}

/** First what was verified, then what was not. */
function headline(result: Verification): string {
  if (result.verdict === 'invalid') {
    const { length } = result.issues;
    return length === 1 ? '1 thing is wrong' : `${length} things are wrong`;
  }
  const verified = verifiedParts(result).join(', ');
  if (result.verdict === 'valid') return `everything was recomputed and verified: ${verified}`;
  const isOpen = new Set(result.incomplete.map(({ type }) => notVerified[type]));
  const open = Object.values(notVerified).filter((what) => isOpen.delete(what));
  const advice = hasUntrustedKeys(result) ? ' (give --resolver URL)' : '';
  return `${verified}; not verified: ${open.join('; ')}${advice}`;
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

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** The result as JSON with the names of the API. */
export function reportJson(result: Verification, keysFrom: string): string {
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
    keys_from: keysFrom,
  };
  return `${shownJson(JSON.stringify(shown, null, 2))}\n`;
}
