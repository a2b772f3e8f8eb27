import { setTimeout as sleep } from 'node:timers/promises';
import type { LedgerTrustClient } from '../src/client/index.ts';
import type { DeliveryRecord } from '../src/service/webhooks/delivery-record.ts';
import { Forked } from './forked.ts';
import { benchEventType, payloadOf } from './payload.ts';
import { clientOf, makeSetting } from './setting.ts';
import type { ReceiverKind, ReceiverReport, ReceiversJob } from './webhook-receivers.ts';

const healthyReceivers = 17;
const sickReceivers: readonly ReceiverKind[] = ['dead', 'dead', 'slow'];
/**
 * Windows of 128 deliveries to those that answer quickly and of 32 to the others, twice: the next window is read while
 * the last one is sent.
 */
export const heldDeliveriesBound = 2 * (healthyReceivers * 128 + sickReceivers.length * 32);
const appendsAtOnce = 256;
const lookEveryMs = 250;
const pageDeliveries = 1_000;

export interface IsolationRun {
  readonly receivers: string;
  readonly events: number;
  readonly appendedSeconds: number;
  /** Until every healthy receiver had every event. */
  readonly deliveredSeconds: number;
  readonly deliveriesPerSecond: number;
  readonly inOrder: boolean;
  readonly heldDeliveriesMax: number;
  /** Of each sick receiver: what reached it and how its deliveries stand. */
  readonly sick: readonly SickReport[];
}

type Statuses = Record<DeliveryRecord['status'], number>;

interface SickReport extends Statuses {
  readonly kind: ReceiverKind;
  readonly received: number;
}

/**
 * Events of one ledger to 17 healthy receivers, alone or beside two dead ones and a slow one. `opsBase`: where the node
 * serves its metrics.
 */
export async function isolationRun(
  { baseUrl, opsBase }: { readonly baseUrl: string; readonly opsBase: string },
  events: number,
  besideSick: boolean,
): Promise<IsolationRun> {
  const sick = besideSick ? sickReceivers : [];
  const kinds = [...Array<ReceiverKind>(healthyReceivers).fill('healthy'), ...sick];
  using receivers = new Forked<ReceiversJob, ReceiverReport[]>('webhook-receivers.ts');
  const { keys, ledgers } = await makeSetting(baseUrl, 1);
  const [key, master] = [keys[0], ledgers[0]?.masters[0]];
  if (key === undefined || master === undefined) throw new Error('the setting is empty');
  await using client = clientOf(baseUrl, key);
  const ids: string[] = [];
  for (const { url } of await receivers.ask(kinds))
    ids.push((await client.createWebhook({ url, eventTypes: [benchEventType] })).id);
  const started = Date.now();
  let index = 0;
  const appended = Promise.all(
    Array.from({ length: appendsAtOnce }, async () => {
      while (index < events) {
        const payload = { ...payloadOf(index++) };
        await client.appendEvent({ uuid: master.masterId, eventType: benchEventType, payload });
      }
    }),
  ).then(() => (Date.now() - started) / 1_000);
  let heldDeliveriesMax = 0;
  let reports: ReceiverReport[];
  do {
    // An append that failed ends the run.
    await Promise.race([sleep(lookEveryMs), appended.then(() => sleep(lookEveryMs))]);
    heldDeliveriesMax = Math.max(heldDeliveriesMax, await heldDeliveries(opsBase));
    reports = await receivers.ask('report');
  } while (reports.some(({ kind, received }) => kind === 'healthy' && received < events));
  const healthy = reports.filter(({ kind }) => kind === 'healthy');
  const deliveredSeconds = (Math.max(...healthy.map(({ lastAtMs }) => lastAtMs)) - started) / 1_000;
  const sickReports: SickReport[] = [];
  for (const [at, { kind, received }] of reports.entries()) {
    const id = ids[at] ?? '';
    if (kind !== 'healthy') sickReports.push({ kind, received, ...(await statusesOf(client, id)) });
    await client.deleteWebhook({ id });
  }
  return {
    receivers: `${healthyReceivers} healthy${besideSick ? `, ${sick.join(', ')}` : ''}`,
    events,
    appendedSeconds: await appended,
    deliveredSeconds,
    deliveriesPerSecond: Math.round((healthyReceivers * events) / deliveredSeconds),
    inOrder: healthy.every(({ inOrder }) => inOrder),
    heldDeliveriesMax,
    sick: sickReports,
  };
}

async function heldDeliveries(opsBase: string): Promise<number> {
  const text = await (await fetch(`${opsBase}/metrics`)).text();
  const held = /^svc_webhook_deliveries_held (\d+)$/m.exec(text)?.[1];
  if (held === undefined) throw new Error('the node does not say how many deliveries it holds');
  return Number(held);
}

/** How many deliveries of a subscription are recorded, by status. */
async function statusesOf(client: LedgerTrustClient, id: string): Promise<Statuses> {
  const counts: Record<string, number> = { PENDING: 0, DELIVERED: 0, FAILED: 0 } satisfies Statuses;
  for (let offset = 0; ; offset += pageDeliveries) {
    const { deliveries } = await client.listWebhookDeliveries({ id, limit: pageDeliveries, offset });
    for (const { status } of deliveries) counts[status] = (counts[status] ?? 0) + 1;
    if (deliveries.length < pageDeliveries) return counts as Statuses;
  }
}
