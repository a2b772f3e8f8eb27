import { setTimeout } from 'node:timers/promises';
import { clientOf, type Setting } from './setting.ts';
import { type Percentiles, percentiles } from './sum.ts';

/** The first events warm the server up, and are not counted. */
const warmUpEvents = 200;
const measuredEvents = 1_000;
/** 50 appends a second, so that none waits for another. */
const pauseMs = 20;
/** How long the last events may take to arrive, ms. */
const arriveMaxMs = 10_000;

export interface FollowLatency {
  readonly events: number;
  /** From `created_at`, which is set just before the commit, so that the time from the commit is no longer. */
  readonly fromCommit: Percentiles;
  /** From the call that appends. */
  readonly fromCall: Percentiles;
  readonly areComplete: boolean;
}

/** Appends to a ledger at one node, and follows it through a node over server-sent events. */
export async function measureFollowLatency(
  { keys, ledgers }: Setting,
  appendAt: string,
  followAt: string,
): Promise<FollowLatency> {
  const [key] = keys;
  const [ledger] = ledgers;
  const [master] = ledger?.masters ?? [];
  if (key === undefined || ledger === undefined || master === undefined) throw new Error('the setting is empty');
  await using client = clientOf(appendAt, key);
  const leave = new AbortController();
  const answer = await fetch(`${followAt}/v1/ledgers/${ledger.ledgerId}/events/follow`, {
    headers: { authorization: `Bearer ${key.apiKey}` },
    signal: leave.signal,
  });
  if (!answer.ok) throw new Error(`the stream was refused: ${await answer.text()}`);
  const calledAt: number[] = [];
  const fromCommit: number[] = [];
  const fromCall: number[] = [];
  const reading = (async () => {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of answer.body ?? []) {
      const nowMs = epochMs();
      text += decoder.decode(chunk, { stream: true });
      const frames = text.split('\n\n');
      text = frames.pop() ?? '';
      for (const frame of frames) {
        const created = /"created_at":"([^"]+)"/.exec(frame)?.[1];
        const n = /"n":(\d+)/.exec(frame)?.[1];
        if (created === undefined || n === undefined) continue;
        fromCommit.push(nowMs - Date.parse(created));
        fromCall.push(nowMs - (calledAt[Number(n)] ?? nowMs));
      }
    }
  })().catch((error: unknown) => {
    if (!leave.signal.aborted) throw error;
  });
  const all = warmUpEvents + measuredEvents;
  for (let n = 0; n < all; n += 1) {
    calledAt.push(epochMs());
    await client.appendEvent({ uuid: master.masterId, eventType: 'MEASURED', payload: { n } });
    await setTimeout(pauseMs);
  }
  const endMs = epochMs();
  while (fromCommit.length < all && epochMs() - endMs < arriveMaxMs) await setTimeout(pauseMs);
  leave.abort();
  await reading;
  const [measured, fromCalls] = [fromCommit.slice(warmUpEvents), fromCall.slice(warmUpEvents)];
  return {
    events: measured.length,
    ...{ fromCommit: percentiles(measured), fromCall: percentiles(fromCalls) },
    areComplete: measured.length === measuredEvents,
  };
}

/** Unix time in ms, with fractions. */
function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
