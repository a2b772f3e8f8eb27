import type { ServerProcess } from './server-process.ts';
import type { Setting } from './setting.ts';
import { rounded } from './sum.ts';

const pageEvents = 1_000;
const pageCount = 20;

interface PagesReport {
  readonly pages: number;
  readonly events: number;
  /** From the request to the last byte, parsed, by the clock of the reader. */
  readonly medianMs: number;
  readonly slowestMs: number;
}

/** Reads pages of a thousand events from all over a ledger; the server checks each event. */
export async function readPages(server: ServerProcess, setting: Setting, events: number): Promise<PagesReport> {
  const [ledger] = setting.ledgers;
  const [reader] = setting.keys;
  if (ledger === undefined || reader === undefined) throw new Error('there is no ledger');
  const times: number[] = [];
  for (let page = 0; page < pageCount; page++) {
    const firstSeq = Math.floor(((events - pageEvents) * (page * 7)) / (pageCount * 7)) + 100;
    const startedMs = performance.now();
    // One request: a thousand events of the benchmark are 1.4 MiB of JSON, and a page ends before 2 MiB.
    const query = `limit=${pageEvents}&from_seq=${firstSeq}`;
    const url = `${server.baseUrl}/v1/ledgers/${ledger.ledgerId}/events?${query}`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${reader.apiKey}` } });
    const { count, integrity } = (await response.json()) as { count: number; integrity: { verified: boolean } };
    if (count !== pageEvents || !integrity.verified) throw new Error(`page from ${firstSeq}: ${count} events`);
    times.push(performance.now() - startedMs);
  }
  times.sort((left, right) => left - right);
  const at = (index: number): number => times[index] ?? 0;
  return {
    pages: pageCount,
    events: pageEvents,
    medianMs: rounded((at(pageCount / 2 - 1) + at(pageCount / 2)) / 2),
    slowestMs: rounded(at(pageCount - 1)),
  };
}
