import { rounded } from './run.ts';
import type { ServerProcess } from './server-process.ts';
import { clientOf, type Setting } from './setting.ts';

const pageEvents = 1_000;
const pageCount = 20;

export interface PagesReport {
  readonly pages: number;
  readonly events: number;
  /** From the request to the last byte, by the clock of the reader. */
  readonly medianMs: number;
  readonly slowestMs: number;
}

/** Reads different pages of a ledger, each checked by the server as it reads them, all over its length. */
export async function readPages(server: ServerProcess, setting: Setting, events: number): Promise<PagesReport> {
  const [ledger] = setting.ledgers;
  const [reader] = setting.keys;
  if (ledger === undefined || reader === undefined) throw new Error('there is no ledger');
  await using client = clientOf(server.baseUrl, reader);
  const times: number[] = [];
  for (let page = 0; page < pageCount; page++) {
    const fromSeq = Math.floor(((events - pageEvents) * (page * 7)) / (pageCount * 7)) + 100;
    const path = `/v1/ledgers/${ledger.ledgerId}/events?limit=${pageEvents}&from_seq=${fromSeq}`;
    const startedMs = performance.now();
    const response = await fetch(server.baseUrl + path, { headers: { authorization: `Bearer ${reader.apiKey}` } });
    const text = await response.text();
    times.push(performance.now() - startedMs);
    const { count, integrity } = JSON.parse(text) as { count: number; integrity: { verified: boolean } };
    if (count !== pageEvents || !integrity.verified) throw new Error(`page from ${fromSeq}: ${count} events`);
  }
  await client.close();
  times.sort((left, right) => left - right);
  const at = (index: number): number => times[index] ?? 0;
  return {
    pages: pageCount,
    events: pageEvents,
    medianMs: rounded((at(pageCount / 2 - 1) + at(pageCount / 2)) / 2),
    slowestMs: rounded(at(pageCount - 1)),
  };
}
