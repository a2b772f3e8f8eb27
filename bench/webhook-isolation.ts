import { setTimeout as sleep } from 'node:timers/promises';
import type { DeliveryRecord } from '../src/service/webhooks/delivery-record.ts';
import { openWebhookNode } from './webhook-node.ts';
import { Receivers } from './webhook-receiver-process.ts';
import type { ReceiverKind } from './webhook-receivers.ts';

const healthyReceivers = 17;
const sickReceivers: readonly ReceiverKind[] = ['dead', 'dead', 'slow'];
const appendsAtOnce = 256;

interface IsolationRun {
  readonly receivers: string;
  readonly events: number;
  readonly appendedSeconds: number;
  /** Until every healthy receiver had every event. */
  readonly deliveredSeconds: number;
  readonly deliveriesPerSecond: number;
  readonly inOrder: boolean;
  readonly heldDeliveriesMax: number;
  readonly heapMibMax: number;
  readonly rssMibMax: number;
  readonly cpuUsPerDelivery: number;
  /** Of each sick receiver: what reached it and how its deliveries stand. */
  readonly sick: readonly SickReport[];
}

interface SickReport extends Record<DeliveryRecord['status'], number> {
  readonly kind: ReceiverKind;
  readonly received: number;
}

/** Events to 17 healthy receivers, alone or beside two dead ones and a slow one. */
export async function isolationRun(events: number, besideSick: boolean): Promise<IsolationRun> {
  const sick = besideSick ? sickReceivers : [];
  const node = await openWebhookNode();
  const receivers = await Receivers.start([...Array<ReceiverKind>(healthyReceivers).fill('healthy'), ...sick]);
  const append = await node.openMaster();
  const ids: string[] = [];
  for (const url of receivers.urls) ids.push(await node.subscribe(url));
  const [started, cpuBefore] = [Date.now(), process.cpuUsage()];
  let [heldMax, rssMax, heapMax] = [0, 0, 0];
  const watch = setInterval(() => {
    heldMax = Math.max(heldMax, node.held());
    const { rss, heapUsed } = process.memoryUsage();
    rssMax = Math.max(rssMax, rss);
    heapMax = Math.max(heapMax, heapUsed);
  }, 100);
  let left = events;
  await Promise.all(
    Array.from({ length: appendsAtOnce }, async () => {
      while (left-- > 0) await append();
    }),
  );
  const appendedSeconds = (Date.now() - started) / 1_000;
  let reports = await receivers.reports();
  while (reports.some(({ kind, received }) => kind === 'healthy' && received < events)) {
    await sleep(250);
    reports = await receivers.reports();
  }
  clearInterval(watch);
  const { user, system } = process.cpuUsage(cpuBefore);
  const healthy = reports.filter(({ kind }) => kind === 'healthy');
  const deliveredSeconds = (Math.max(...healthy.map(({ lastAtMs }) => lastAtMs)) - started) / 1_000;
  const sickReports: SickReport[] = [];
  for (const [at, { kind, received }] of reports.entries()) {
    if (kind !== 'healthy') sickReports.push({ kind, received, ...(await node.statuses(ids[at] ?? '')) });
  }
  receivers.stop();
  await node.close();
  const deliveries = healthyReceivers * events;
  return {
    receivers: `${healthyReceivers} healthy${besideSick ? `, ${sick.join(', ')}` : ''}`,
    events,
    appendedSeconds,
    deliveredSeconds,
    deliveriesPerSecond: Math.round(deliveries / deliveredSeconds),
    inOrder: healthy.every(({ inOrder }) => inOrder),
    heldDeliveriesMax: heldMax,
    heapMibMax: mib(heapMax),
    rssMibMax: mib(rssMax),
    cpuUsPerDelivery: Math.round((user + system) / deliveries),
    sick: sickReports,
  };
}

const mib = (bytes: number) => Math.round(bytes / 2 ** 20);
