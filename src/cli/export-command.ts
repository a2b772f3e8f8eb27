import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import type { Command } from 'commander';
import { actorDocumentToJson, authorityDocumentToJson, eventToJson } from '../client/answer-encoding.ts';
import type { LedgerTrustClient } from '../client/client.ts';
import { actorUri } from '../domain/svc-uri.ts';
import { exportFormat } from './export-file.ts';
import { progressBar } from './progress-bar.ts';
import { CliError, readInput, reasonOf, type Terminal } from './terminal.ts';

interface ExportOptions {
  readonly url: string;
  readonly apiKeyFile?: string;
  readonly out?: string;
  readonly ca?: string;
}

/** `ledger-trust export`: a whole ledger with all that is needed to verify it offline. */
export function addExport(program: Command, terminal: Terminal): void {
  program
    .command('export')
    .description(
      'Write all events of a ledger, the resolver documents of their authors and the trust anchor to one file.',
    )
    .argument('<ledger>', 'ledger id')
    .requiredOption('--url <url>', 'base URL of the service')
    .option('--api-key-file <file>', 'file that holds the API key; else the environment variable LEDGER_TRUST_API_KEY')
    .option('--out <file>', 'file to write; stdout if left out')
    .option('--ca <file>', 'certificates to trust, PEM')
    .action(async (ledgerId: string, options: ExportOptions) => {
      const apiKey = await readApiKey(terminal, options.apiKeyFile);
      const ca = options.ca === undefined ? {} : { ca: (await readInput(terminal, options.ca)).toString() };
      const { createClient } = await import('../client/client.ts');
      await using client = createClient({ baseUrl: options.url, apiKey, ...ca });
      const sink = options.out === undefined ? stdoutSink(terminal) : await fileSink(options.out);
      try {
        const { count, issues } = await writeExport(terminal, client, ledgerId, sink.write);
        await sink.keep();
        if (options.out !== undefined)
          terminal.tell(`Exported ${count} events of ledger ${ledgerId} to ${options.out}.\n`);
        if (issues > 0) {
          throw new CliError(
            `The service itself reports ${issues} failures of integrity in this ledger: the export holds what it showed.`,
          );
        }
      } finally {
        await sink.drop();
      }
    });
}

async function readApiKey(terminal: Terminal, file: string | undefined): Promise<string> {
  const key =
    file === undefined ? terminal.env.LEDGER_TRUST_API_KEY : (await readInput(terminal, file)).toString('utf8');
  if (key === undefined || key.trim() === '') {
    throw new CliError('An API key is needed: give --api-key-file, or set LEDGER_TRUST_API_KEY.');
  }
  return key.trim();
}

type Write = (line: string) => Promise<void>;

async function writeExport(terminal: Terminal, client: LedgerTrustClient, ledgerId: string, write: Write) {
  const newest = await client.listLedgerEvents({ ledgerId, limit: 1, order: 'desc' });
  const bar = await progressBar(terminal, '{bar} {value} of {total} events', (newest.events[0]?.seq ?? -1) + 1);
  const authors = new Set<string>();
  let count = 0;
  let issues = 0;
  try {
    await write(
      JSON.stringify({
        format: exportFormat,
        ledger_id: ledgerId,
        exported_at: new Date(terminal.now()).toISOString(),
      }),
    );
    const note = (found: readonly unknown[]): void => {
      issues += found.length;
    };
    for await (const event of client.ledgerEvents(ledgerId, {}, { onIssues: note })) {
      if (event.actorId !== null) authors.add(event.actorId);
      await write(`{"event":${eventToJson(event)}}`);
      count += 1;
      bar.add(1);
    }
  } finally {
    bar.stop();
  }
  for (const actorId of authors) {
    await write(`{"actor":${actorDocumentToJson(await client.resolveActor({ svcUri: actorUri(actorId) }))}}`);
  }
  await write(`{"authority":${authorityDocumentToJson(await client.getAuthority())}}`);
  await write(JSON.stringify({ end: { count } }));
  return { count, issues };
}

interface Sink {
  readonly write: Write;
  /** All is written: makes it last. */
  keep(): Promise<void>;
  /** Ends the sink; what was not kept is taken away. */
  drop(): Promise<void>;
}

function stdoutSink(terminal: Terminal): Sink {
  return { write: (line) => terminal.print(`${line}\n`), keep: async () => {}, drop: async () => {} };
}

/** A file appears under its name when it is whole; until then it has another one. */
async function fileSink(path: string): Promise<Sink> {
  const part = `${path}.part`;
  const file = createWriteStream(part, { mode: 0o600, flush: true });
  try {
    await once(file, 'open');
  } catch (error) {
    throw new CliError(`${part} cannot be written: ${reasonOf(error)}.`);
  }
  let kept = false;
  return {
    write: async (line) => {
      if (!file.write(`${line}\n`)) await once(file, 'drain');
    },
    keep: async () => {
      file.end();
      await finished(file);
      await rename(part, path);
      kept = true;
    },
    drop: async () => {
      if (kept) return;
      file.destroy();
      await rm(part, { force: true });
    },
  };
}
