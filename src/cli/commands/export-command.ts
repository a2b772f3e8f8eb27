import type { Command } from 'commander';
import { actorDocumentToJson, authorityDocumentToJson, eventToJson } from '../../client/call/answer-encoding.ts';
import type { LedgerTrustClient } from '../../client/client.ts';
import { LedgerTrustError } from '../../client/error.ts';
import type { Event } from '../../client/event.ts';
import type { EventReadingOptions } from '../../client/event-reading.ts';
import type { VerifiedCheckpoint } from '../../client/proofs/proof-reading.ts';
import { ProofRefused } from '../../domain/log/proof-refused.ts';
import { actorUri } from '../../domain/values/svc-uri.ts';
import { isUuid } from '../../domain/values/uuid-form.ts';
import { openService } from '../service/service.ts';
import { readSettings, type SettingOptions } from '../service/settings.ts';
import { progressBar } from '../terminal/progress-bar.ts';
import { fileSink, stdoutSink, type Write } from '../terminal/sink.ts';
import { CliError, type Terminal, usageError } from '../terminal/terminal.ts';
import { type ExportEnd, type ExportKind, exportFormat } from './export-file.ts';
import { readApiKey } from './file-content.ts';
import { refusedError } from './refused-proof.ts';

interface ExportOptions extends SettingOptions {
  readonly master?: string;
  readonly apiKeyFile?: string;
  readonly out?: string;
  readonly json?: boolean;
  readonly checkpoint?: string;
}

/** `ledger-trust export`: writes a ledger or one master, with everything that is needed to verify it offline. */
export function addExport(program: Command, terminal: Terminal): void {
  program
    .command('export')
    .description(
      'Write all events of a ledger that you may read, or of a master, the resolver documents of their authors, the trust anchor and a signed checkpoint to one file.',
    )
    .argument('[ledger]', 'ledger id')
    .option('--profile <name>', 'profile to call with; else LEDGER_TRUST_PROFILE, else default')
    .option('--url <url>', 'base URL of the service; else LEDGER_TRUST_URL, else that of the profile')
    .option('--master <uuid>', 'the events of this master, in place of a ledger')
    .option('--api-key-file <file>', 'file that holds the API key; else LEDGER_TRUST_API_KEY, else that of the profile')
    .option('--out <file>', 'file to write; stdout if left out')
    .option('--json', 'with --out: show as JSON what was written')
    .option('--checkpoint <file>', 'write the checkpoint to a file of its own, too')
    .option('--ca <file>', 'certificates to trust, PEM')
    .action(async (ledgerId: string | undefined, options: ExportOptions) => {
      const subject = subjectOf(ledgerId, options.master);
      if (options.json === true && options.out === undefined)
        throw usageError('Give --out beside --json: without it, stdout gets the export itself.');
      const settings = await readSettings(terminal, options);
      const apiKey = await readApiKey(terminal, options.apiKeyFile, settings);
      await using client = await openService(terminal, { baseUrl: settings.url, apiKey, ca: settings.ca });
      await using sink = options.out === undefined ? stdoutSink(terminal) : await fileSink(options.out);
      const written = await writeExport(terminal, client, subject, sink.write);
      await sink.keep();
      const { kind, count, issues, signed } = written;
      if (options.json === true)
        await terminal.print(`${JSON.stringify(answerOf(subject, written, options.out), null, 2)}\n`);
      else if (options.out !== undefined) {
        const segment = kind === 'segment' ? ', a segment,' : '';
        terminal.tell(`Exported ${count} events of ${subject.type} ${subject.id}${segment} to ${options.out}.\n`);
      }
      if (signed.failure !== null && options.checkpoint === undefined)
        terminal.tell(
          `The export holds no checkpoint, so that verify is incomplete unless a seal ends it: ${signed.failure.message}\n`,
        );
      if (options.checkpoint !== undefined) await writeCheckpoint(signed, options.checkpoint);
      if (issues > 0) {
        throw new CliError(
          `The service itself reports ${issues} failures of integrity in this ${subject.type}: the export holds what it showed.`,
        );
      }
    });
}

interface Subject {
  readonly type: 'ledger' | 'master';
  readonly id: string;
}

function subjectOf(ledgerId: string | undefined, masterId: string | undefined): Subject {
  if ((ledgerId === undefined) === (masterId === undefined))
    throw usageError('Give the id of a ledger, or --master and that of a master.');
  const type = masterId === undefined ? 'ledger' : 'master';
  const id = masterId ?? ledgerId ?? '';
  if (!isUuid(id)) throw usageError(`The id of a ${type} must be a UUID in lower case: ${JSON.stringify(id)} is none.`);
  return { type, id };
}

/** The signed checkpoint of exactly the exported events. */
interface SignedNote {
  /** null for a segment, which no checkpoint covers, and if the service gave none. */
  readonly note: string | null;
  /** Why the service gave none. */
  readonly failure: ProofRefused | LedgerTrustError | null;
}

async function signedNote(
  client: LedgerTrustClient,
  { type, id }: Subject,
  { count, kind }: ExportEnd,
  last: Event | null,
): Promise<SignedNote> {
  if (kind === 'segment') return { note: null, failure: null };
  try {
    const { note } = await (type === 'ledger'
      ? ledgerCheckpoint(client, id, count, last)
      : client.masterCheckpoint(id, { size: count }));
    return { note, failure: null };
  } catch (failure) {
    // The export is of use without it: who has a checkpoint of the ledger gives it to verify.
    if (failure instanceof ProofRefused || failure instanceof LedgerTrustError) return { note: null, failure };
    throw failure;
  }
}

/** A delegate of single masters gets no checkpoint of the ledger. The proof of the last event that it sees has one. */
async function ledgerCheckpoint(
  client: LedgerTrustClient,
  ledgerId: string,
  size: number,
  last: Event | null,
): Promise<VerifiedCheckpoint> {
  try {
    return await client.checkpoint(ledgerId, { size });
  } catch (error) {
    const isPartial = error instanceof LedgerTrustError && error.code === 'permission_denied';
    if (!isPartial || last === null) throw error;
    return (await client.proveEvent(last)).checkpoint;
  }
}

/** Throws CliError for a segment, and throws why the service gave no checkpoint. */
async function writeCheckpoint({ note, failure }: SignedNote, path: string): Promise<void> {
  if (failure !== null) throw failure instanceof ProofRefused ? refusedError(failure) : failure;
  if (note === null)
    throw new CliError('No checkpoint was written: it covers a whole ledger, and the export is a segment.');
  await using sink = await fileSink(path);
  await sink.write(note.trimEnd());
  await sink.keep();
}

async function writeExport(terminal: Terminal, client: LedgerTrustClient, subject: Subject, write: Write) {
  const { ledgerId, total, events } = await openList(client, subject);
  using bar = await progressBar(terminal, '{bar} {value} of {total} events', total);
  const authors = new Set<string>();
  let count = 0;
  let last: Event | null = null;
  let hasGaps = false;
  const issues: string[] = [];
  const header = {
    format: exportFormat,
    ledger_id: ledgerId,
    master_id: subject.type === 'master' ? subject.id : undefined,
    exported_at: new Date(terminal.now()).toISOString(),
  };
  await write(JSON.stringify(header));
  for await (const event of events({ onIssues: (found) => issues.push(...found.map(({ type }) => type)) })) {
    if (event.actorId !== null) authors.add(event.actorId);
    if (event.seq !== count) hasGaps = true;
    await write(`{"event":${eventToJson(event)}}`);
    count += 1;
    last = event;
    bar.add(1);
  }
  for (const actorId of authors) {
    await write(`{"actor":${actorDocumentToJson(await client.resolveActor({ svcUri: actorUri(actorId) }))}}`);
  }
  // The service never reports `missing_event` for a segment. If it does, the caller reads the whole ledger.
  const isSegment = subject.type === 'ledger' && hasGaps && !issues.includes('missing_event');
  const kind: ExportKind = isSegment ? 'segment' : subject.type;
  const end: ExportEnd = { count, kind };
  const signed = await signedNote(client, subject, end, last);
  // Behind the checkpoint: so the anchor lists the key that signed it.
  await write(`{"authority":${authorityDocumentToJson(await client.getAuthority())}}`);
  if (signed.note !== null) await write(JSON.stringify({ checkpoint: signed.note }));
  await write(JSON.stringify({ end }));
  return { ledgerId, count, kind, signed, issues: issues.length };
}

/** What `--json` shows. */
function answerOf(
  subject: Subject,
  { ledgerId, count, kind, issues }: Awaited<ReturnType<typeof writeExport>>,
  file: string | undefined,
): object {
  const master = subject.type === 'master' ? { master_id: subject.id } : {};
  return { ledger_id: ledgerId, ...master, kind, count, issues, file };
}

interface EventList {
  readonly ledgerId: string;
  /** The number of events, by the newest event. */
  readonly total: number;
  events(options: EventReadingOptions): AsyncIterable<Event>;
}

async function openList(client: LedgerTrustClient, { type, id }: Subject): Promise<EventList> {
  const newest = { limit: 1, order: 'desc' };
  if (type === 'ledger') {
    const { events } = await client.listLedgerEvents({ ...newest, ledgerId: id });
    const total = (events[0]?.seq ?? -1) + 1;
    return { ledgerId: id, total, events: (options) => client.ledgerEvents(id, {}, options) };
  }
  const { ledgerId, events } = await client.listMasterEvents({ ...newest, uuid: id });
  const total = (events[0]?.masterSeq ?? -1) + 1;
  return { ledgerId, total, events: (options) => client.masterEvents(id, {}, options) };
}
