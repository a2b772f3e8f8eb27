import { type Event, keysFromResolver, verifyEvents } from '../src/client/index.ts';
import { answerJobs } from './forked.ts';
import { benchEventType, indexOf } from './payload.ts';
import { type BenchKey, clientOf } from './setting.ts';
import { isWronglySigned } from './signing.ts';

/** Ledgers of one run that are to be read back. Plain data: it comes to this process as JSON. */
export interface VerifyingJob {
  readonly baseUrl: string;
  /** How many events the run had, refused ones included. */
  readonly events: number;
  readonly ledgers: readonly { readonly ledgerId: string; readonly reader: BenchKey }[];
}

export interface VerifyingResult {
  /** Events read and verified, those that the service wrote by itself included. */
  readonly verified: number;
  readonly actorSignatures: number;
  /** Indexes of the run's events that are there, as a bitmap in base64. */
  readonly found: string;
  readonly problems: readonly string[];
}

const problemsMax = 20;
/**
 * In development mode the trust anchor publishes no key, so that seals of the service's own events stay unchecked. The
 * run itself knows its events: no checkpoint is needed that says how many there are.
 */
const leftOpen: ReadonlySet<string> = new Set(['authority_keys_unknown', 'order_unsigned']);

/** Reads every event of some ledgers through the API and verifies signatures, hashes and chain. */
async function verify(job: VerifyingJob): Promise<VerifyingResult> {
  const found = Buffer.alloc(Math.ceil(job.events / 8));
  const problems: string[] = [];
  let verified = 0;
  let actorSignatures = 0;
  for (const { ledgerId, reader } of job.ledgers) {
    await using client = clientOf(job.baseUrl, reader);
    const note = async function* (events: AsyncIterable<Event>): AsyncIterable<Event> {
      for await (const event of events) {
        if (event.eventType === benchEventType) noteIndex(event, job.events, found, problems);
        yield event;
      }
    };
    const events = note(client.ledgerEvents(ledgerId, { limit: 1_000 }, { timeoutMs: 120_000 }));
    const result = await verifyEvents(events, { kind: 'ledger', keys: keysFromResolver(client) });
    verified += result.checked.chainHashes;
    actorSignatures += result.checked.actorSignatures;
    for (const { type, detail } of result.issues) problems.push(`${ledgerId}: ${type}, ${detail}`);
    for (const { type, detail } of result.incomplete) {
      if (!leftOpen.has(type)) problems.push(`${ledgerId}: ${type}, ${detail}`);
    }
  }
  return { verified, actorSignatures, found: found.toString('base64'), problems: problems.slice(0, problemsMax) };
}

function noteIndex(event: Event, events: number, found: Buffer, problems: string[]): void {
  const index = indexOf(event.payload);
  if (index === null || index >= events) return void problems.push(`${event.id} is no event of the run`);
  if (isWronglySigned(index)) problems.push(`${event.id} was wrongly signed`);
  const byte = found[index >> 3] ?? 0;
  if ((byte & (1 << (index & 7))) !== 0) problems.push(`${event.id} is there twice`);
  found[index >> 3] = byte | (1 << (index & 7));
}

answerJobs(verify);
