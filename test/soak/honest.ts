import { randomUUID } from 'node:crypto';
import { bearerOf, type KeyPair, newKeyPair, signatureOf } from '../support/parties.ts';

/** A buyer who appends signed events to a master of its own, while others attack. */
interface HonestAppends {
  readonly ledgerId: string;
  /** Milliseconds that each append took, since the last call of this; 0 where none was answered. */
  take(): AppendTimes;
  /** Sends nothing more and waits for the answers under way. */
  stop(): Promise<void>;
}

interface HonestTarget {
  /** `http://host:port` of each node; the first is the watched one. */
  readonly bases: readonly [string, ...string[]];
  /** Whether the watched node owns this ledger. */
  owns(ledgerId: string): Promise<boolean>;
}

interface AppendTimes {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Appends that were not answered with 200, with what came instead. */
  readonly failures: readonly string[];
}

interface Parties {
  readonly bearer: Readonly<Record<string, string>>;
  readonly kid: string;
  readonly key: KeyPair;
  readonly ledgerId: string;
  readonly masterId: string;
  readonly injected: Readonly<Record<string, string>>;
}

async function call(base: string, path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(`${base}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text);
}

async function register(base: string, key: KeyPair) {
  const body = { name: 'An honest party', email: 'party@example.com', region: 'eu', public_key: key.publicKey };
  const { sandbox } = await call(base, '/v1/developer/register', body);
  return sandbox;
}

async function makeParties(base: string): Promise<Parties> {
  const key = newKeyPair();
  const buyer = await register(base, key);
  const supplier = await register(base, newKeyPair());
  const bearer = bearerOf(buyer.api_key);
  const { id: ledgerId } = await call(base, '/v1/ledgers', { supplier_svc_id: supplier.svc_id }, bearer);
  const { kid } = buyer.signing_key;
  const master = { ledger_id: ledgerId, business_ref: 'PO-1', scope: 'ORDER' };
  const signature = signatureOf(key.privateKey, 'TRACELEDGER_MASTER_CREATED', ledgerId, master);
  const signed = { ...bearer, 'x-signing-key-id': kid, 'x-actor-sig': signature };
  const { uuid: masterId } = await call(base, '/v1/traceledger/master', master, signed);
  const { business_ref, scope } = master;
  const [buyer_actor_id, supplier_actor_id] = [buyer.actor_id, supplier.actor_id];
  const injected = { traceledger_master_uuid: masterId, business_ref, scope, buyer_actor_id, supplier_actor_id };
  return { bearer, kid, key, ledgerId, masterId, injected };
}

/** A ledger is owned by the watched node by chance, one of two. */
const partiesMax = 40;

async function makePartiesOf({ bases, owns }: HonestTarget): Promise<Parties> {
  for (let made = 0; made < partiesMax; made += 1) {
    const parties = await makeParties(bases[0]);
    if (await owns(parties.ledgerId)) return parties;
  }
  throw new Error(`The watched node owns none of ${partiesMax} ledgers`);
}

/**
 * Appends so many events a second until it is stopped, each at its time, whatever became of the ones before. The
 * ledger is one that the watched node owns, and the appends go through all nodes in turn.
 */
export async function startHonestAppends(target: HonestTarget, perSecond: number): Promise<HonestAppends> {
  const parties = await makePartiesOf(target);
  const { bases } = target;
  const underWay = new Set<Promise<void>>();
  let times: number[] = [];
  let failures: string[] = [];

  const append = async (base: string): Promise<void> => {
    const payload = { quantity: 12, note: randomUUID() };
    const { key, kid, ledgerId, masterId, injected, bearer } = parties;
    const signature = signatureOf(key.privateKey, 'GOODS_COUNTED', ledgerId, { ...payload, ...injected });
    const headers = { ...bearer, 'x-signing-key-id': kid, 'x-actor-sig': signature, 'idempotency-key': randomUUID() };
    const begun = performance.now();
    try {
      await call(base, `/v1/traceledger/master/${masterId}/events`, { event_type: 'GOODS_COUNTED', payload }, headers);
      times.push(performance.now() - begun);
    } catch (error) {
      failures.push(String(error).slice(0, 200));
    }
  };

  const begunMs = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - begunMs) * perSecond) / 1_000);
    for (; sent < due; sent += 1) {
      const one = append(bases[sent % bases.length] ?? bases[0]).finally(() => underWay.delete(one));
      underWay.add(one);
    }
  }, 5);

  return {
    ledgerId: parties.ledgerId,
    take() {
      const sorted = times.toSorted((a, b) => a - b);
      const at = (share: number): number => Math.round(sorted[Math.floor(sorted.length * share)] ?? 0);
      const taken = { count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), failures };
      times = [];
      failures = [];
      return taken;
    },
    async stop() {
      clearInterval(timer);
      await Promise.all(underWay);
    },
  };
}
