import { restRoutes } from '../../src/rpc/endpoints/routes.ts';
import { openLmdb } from '../../src/store/lmdb/open.ts';
import type { Party } from './parties.ts';
import { done, type Fields, type RestAnswer, rest } from './parties-rest.ts';
import { untilKnownElsewhere } from './several-nodes.ts';

/** An actor's whole access history, newest first. */
export async function historyOf(base: string, party: Pick<Party, 'bearer'>, query = ''): Promise<Fields[]> {
  await untilKnownElsewhere('access history');
  const answer = await done(base, 'GET', `/v1/audit/access?limit=1000${query}`, party);
  return answer.rows('access_events');
}

export interface Tracked {
  readonly answer: RestAnswer;
  readonly requestId: string;
}

let calls = 0;

/** A call that is found again in a history by its request id. */
export async function tracked(
  base: string,
  method: string,
  path: string,
  request: { readonly headers: Readonly<Record<string, string>>; readonly body?: unknown },
): Promise<Tracked> {
  const requestId = `tracked-${++calls}`;
  const headers = { ...request.headers, 'x-request-id': requestId };
  return { answer: await rest(base, method, path, { ...request, headers }), requestId };
}

/** What a stopped node has kept of an actor that cannot ask for it: entities have no API key. */
export async function storedHistory(dataDir: string, actorId: string) {
  await using stores = await openLmdb({ dataDir, now: () => Date.now(), onFatal: () => {} });
  return await stores.access.list(actorId, { ledgerId: null, since: 0, limit: 1000, offset: 0, descending: false });
}

/** All methods that ask for a credential, as `Service.Method`. */
export function authenticatedMethods(none: number): string[] {
  const names = restRoutes()
    .filter(({ rule }) => rule.auth !== none)
    .map(({ method }) => `${method.parent.name}.${method.name}`);
  return [...new Set(names)].sort();
}
