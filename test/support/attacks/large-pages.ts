import { call, ownLedger, type ReadTarget } from './read-target.ts';
import type { AttackTarget } from './target.ts';

type Page = NonNullable<AttackTarget['page']>;

/** A page of 2.5 MB of events in a ledger of the attacker's own. */
export async function eventsPage(target: ReadTarget, signal: AbortSignal): Promise<Page> {
  const { path, apiKeys } = await ownLedger(target, signal, { events: 40, payloadBytes: 60_000, signed: false });
  return { path: `${path}?limit=1000`, apiKey: apiKeys[0] ?? '' };
}

/** A page of 200 entities with long names, which anybody may onboard. */
export async function entitiesPage(target: ReadTarget, signal: AbortSignal): Promise<Page> {
  const { apiKeys } = await ownLedger(target, signal, { events: 0, payloadBytes: 0, signed: false });
  for (let n = 0; n < 200 && !signal.aborted; n += 1) {
    const entity = { display_name: '€'.repeat(256), entity_type: 'ATTACKER', unique_id: `${n}` };
    await call(`${target.httpUrl}/v1/entities/onboard`, {}, entity);
  }
  return { path: '/v1/entities?limit=1000', apiKey: apiKeys[0] ?? '' };
}
