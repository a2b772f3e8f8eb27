import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { Agent, request } from 'node:http';
import { canonicalize } from 'json-canonicalize';

/** Where the attacked node answers REST, such as `http://127.0.0.1:8080`. */
export interface ReadTarget {
  readonly httpUrl: string;
}

/** A ledger of an attacker's own, with what it takes to read it. */
interface OwnLedger {
  readonly path: string;
  readonly masterId: string;
  /** API keys of one actor: the limits of calls are by key. */
  readonly apiKeys: readonly string[];
}

interface OwnLedgerOptions {
  readonly events: number;
  readonly payloadBytes: number;
  readonly signed: boolean;
}

type Json = Readonly<Record<string, unknown>>;

const apiKeys = 10;
const appendsAtOnce = 16;

/** Posts until it is answered with success; waits where the node asks for that. */
export async function call(url: string, headers: Record<string, string>, body: object): Promise<Json> {
  for (;;) {
    const sent = { 'content-type': 'application/json', ...headers };
    const response = await fetch(url, { method: 'POST', headers: sent, body: JSON.stringify(body) });
    const answer = (await response.json()) as Json;
    if (response.ok) return answer;
    if (response.status !== 429 && response.status !== 503) throw new Error(`${url}: ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Registers an attacker as anybody may, and fills a ledger of its own. */
export async function ownLedger(
  { httpUrl }: ReadTarget,
  signal: AbortSignal,
  options: OwnLedgerOptions,
): Promise<OwnLedger> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64');
  const key = options.signed ? { public_key: raw } : {};
  const register = (more: object) =>
    call(`${httpUrl}/v1/developer/register`, {}, { name: 'A', email: 'a@example.com', region: 'eu', ...more });
  const [own, other] = [await register(key), await register({})].map(({ sandbox }) => sandbox as Json);
  const bearer = { authorization: `Bearer ${own?.api_key}` };
  const { id } = await call(`${httpUrl}/v1/ledgers`, bearer, { supplier_svc_id: other?.svc_id });
  const signed = (eventType: string, payload: object): Record<string, string> =>
    options.signed ? { ...bearer, 'x-actor-sig': signatureOf(privateKey, eventType, String(id), payload) } : bearer;
  const master = { ledger_id: id, business_ref: 'PO-1', scope: 'ORDER' };
  const { uuid } = await call(`${httpUrl}/v1/traceledger/master`, signed('TRACELEDGER_MASTER_CREATED', master), master);
  const injected = {
    traceledger_master_uuid: uuid,
    business_ref: 'PO-1',
    scope: 'ORDER',
    buyer_actor_id: own?.actor_id,
    supplier_actor_id: other?.actor_id,
  };
  let left = options.events;
  const appendAll = async (): Promise<void> => {
    while (!signal.aborted && left-- > 0) {
      const payload = { n: left, text: 'x'.repeat(options.payloadBytes) };
      const headers = signed('FILLED', { ...payload, ...injected });
      await call(`${httpUrl}/v1/traceledger/master/${uuid}/events`, headers, { event_type: 'FILLED', payload });
    }
  };
  await Promise.all(Array.from({ length: appendsAtOnce }, appendAll));
  const more = await Promise.all(
    Array.from({ length: apiKeys - 1 }, (_, at) => call(`${httpUrl}/v1/developer/keys`, bearer, { name: `key ${at}` })),
  );
  return {
    path: `/v1/ledgers/${id}/events`,
    masterId: String(uuid),
    apiKeys: [String(own?.api_key), ...more.map((one) => String(one.api_key))],
  };
}

function signatureOf(key: KeyObject, eventType: string, ledgerId: string, payload: object): string {
  const message = `${eventType}\0${ledgerId}\0${canonicalize(payload)}`;
  return sign(null, createHash('sha256').update(message).digest(), key).toString('base64');
}

/** What came of the reads of an attack, by status; 0: it was broken off. */
export type ReadStatuses = Map<number, number>;

/** One read, whose answer is thrown away; broken off after a time, if one is given. Its status, or 0. */
function readOnce(
  url: string,
  apiKey: string,
  agent: Agent,
  signal: AbortSignal,
  abandonAfterMs: number | null,
): Promise<number> {
  return new Promise((resolve) => {
    const sent = request(url, { agent, signal, headers: { authorization: `Bearer ${apiKey}` } }, (response) => {
      response.on('error', () => resolve(0)).on('end', () => resolve(response.statusCode ?? 0));
      response.resume();
    });
    sent.on('error', () => resolve(0));
    sent.end();
    if (abandonAfterMs !== null) setTimeout(() => sent.destroy(), abandonAfterMs);
  });
}

/** What an attack tells, and how large its ledger is. */
export interface ReadAttackOptions {
  readonly statuses?: ReadStatuses;
  /** Events of the ledger. */
  readonly events?: number;
  /** Called when the ledger is filled and a first read was answered. */
  readonly begun?: () => void;
}

/**
 * Reads again and again on so many connections, without a pause, until the signal ends, once a first read was answered
 * with 200. Throws where the read itself is wrong, such as one of a ledger that is not there.
 */
export async function readOn(
  { httpUrl }: ReadTarget,
  ledger: OwnLedger,
  query: string,
  signal: AbortSignal,
  connections: number,
  { statuses = new Map(), begun }: ReadAttackOptions,
  abandonAfterMs: number | null = null,
): Promise<void> {
  const url = `${httpUrl}${ledger.path}?${query}`;
  const throwUnlessRead = (status: number): void => {
    if (status >= 400 && status < 500 && status !== 429) throw new Error(`A read of the attack was answered ${status}`);
  };
  const first = new Agent();
  for (let status = 0; status !== 200 && !signal.aborted; ) {
    status = await readOnce(url, ledger.apiKeys[0] ?? '', first, signal, null);
    throwUnlessRead(status);
    if (status !== 200) await new Promise((resolve) => setTimeout(resolve, 100));
  }
  if (!signal.aborted) begun?.();
  const one = async (_: unknown, at: number): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const apiKey = ledger.apiKeys[at % ledger.apiKeys.length] ?? '';
    while (!signal.aborted) {
      const status = await readOnce(url, apiKey, agent, signal, abandonAfterMs);
      if (signal.aborted) break;
      throwUnlessRead(status);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      // A refusal is answered at once: without this pause the attack would be one of small calls.
      if (status === 429 || status === 503) await new Promise((resolve) => setTimeout(resolve, 20));
    }
    agent.destroy();
  };
  await Promise.all(Array.from({ length: connections }, one));
}
