import { expect, test } from 'vitest';
import {
  append,
  createMaster,
  delegate,
  grant,
  ledgerId,
  masterId,
  openLedger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { typesSent, webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls } from '../../support/world.ts';

const url = 'https://hooks.example/a';

/** A node that holds all shards, and another one that writes. `reads`: reads of the first node's webhooks. `onRead`: sets what runs at each. */
async function twoNodes() {
  const reads = { heads: [] as string[], rows: 0 };
  let atRead = () => {};
  const first = webhookRig({
    ownsShardOf: () => true,
    tellOthers: () => {},
    wrapLedgers: (inner) =>
      beforeCalls(inner, {
        head: (id) => reads.heads.push(id),
        read: () => {
          reads.rows += 1;
          atRead();
        },
      }),
  });
  const other = first.restarted({ ownsShardOf: () => false, tellOthers: () => {} });
  other.webhooks.start();
  await first.run(openLedger(), createMaster());
  const onRead = (then: () => void) => {
    atRead = then;
  };
  return { first, other, reads, onRead };
}

test('an event that a node without the shard wrote is delivered after the next scan', async () => {
  const { first, other } = await twoNodes();
  await first.subscribe(supplier, { url });
  await first.runToEnd(append({ eventType: 'HERE' }));
  await other.runToEnd(append({ eventType: 'ELSEWHERE' }));
  expect(typesSent(first, url)).toEqual(['HERE']);
  await first.lookForDue();
  expect(typesSent(first, url)).toEqual(['HERE', 'ELSEWHERE']);
});

test('an event of a ledger without a cursor is delivered so too', async () => {
  const { first, other } = await twoNodes();
  await first.clock.advance(60_000);
  await first.subscribe(supplier, { url });
  await first.quiet();
  await other.run(append({ eventType: 'ELSEWHERE' }));
  await first.lookForDue();
  expect(typesSent(first, url)).toEqual(['ELSEWHERE']);
});

test('an actor that another node granted access gets the events after its grant', async () => {
  const { first, other } = await twoNodes();
  await first.subscribe(supplier, { url: 'https://supplier.example/' });
  await first.subscribe(delegate, { url });
  await first.quiet();
  await other.run(grant({ access: 'read', masterId, linkId: uuid(0x77) }), append({ eventType: 'ELSEWHERE' }));
  await first.lookForDue();
  await first.runToEnd(append({ eventType: 'HERE' }));
  expect(typesSent(first, url).slice(-2)).toEqual(['ELSEWHERE', 'HERE']);
});

test('a ledger that another node opened is found within 20 scans, with all its events', async () => {
  const { first, other } = await twoNodes();
  await first.subscribe(supplier, { url });
  await first.quiet();
  const opened = uuid(0x2);
  const its = { ledgerId: opened, masterId: uuid(0xab) };
  await other.run(openLedger({ ledgerId: opened }), createMaster(its), append({ ...its, eventType: 'ELSEWHERE' }));
  for (let look = 0; look < 20; look++) {
    await first.clock.advance(15_000);
    await first.lookForDue();
  }
  expect(first.posts.filter(({ event }) => event.ledger_id === opened).map(({ event }) => event.seq)).toEqual([
    0, 1, 2, 3,
  ]);
});

test('the scan of a ledger at rest reads only its head', async () => {
  const { first, reads } = await twoNodes();
  await first.subscribe(supplier, { url });
  await first.runToEnd(append());
  Object.assign(reads, { heads: [], rows: 0 });
  await first.lookForDue();
  expect(reads).toEqual({ heads: [ledgerId], rows: 0 });
});

test('a single node does not scan', async () => {
  const heads: string[] = [];
  const alone = webhookRig({
    wrapLedgers: (inner) =>
      beforeCalls(inner, {
        head: (id) => heads.push(id),
      }),
  });
  await alone.run(openLedger(), createMaster());
  await alone.subscribe(supplier, { url });
  await alone.runToEnd(append());
  heads.length = 0;
  await alone.lookForDue();
  expect(heads).toEqual([]);
});

test('a node that is stopped while it reads an event leaves it for a subscription that it does not know', async () => {
  const { first, other, onRead } = await twoNodes();
  await first.subscribe(supplier, { url: 'https://known.example/' });
  await first.runToEnd(append({ eventType: 'BEFORE' }));
  await other.subscribe(supplier, { url });
  let stopped: Promise<void> | undefined;
  onRead(() => {
    stopped ??= first.webhooks[Symbol.asyncDispose]();
  });
  await first.runToEnd(append({ eventType: 'MEANWHILE' }));
  for (let at = 0; at < 3; at++) await first.advance(1_000);
  await stopped;
  expect(stopped).toBeDefined();
  expect(typesSent(first, url)).toEqual([]);
  const next = await first.resumed({ tellOthers: () => {} });
  expect(typesSent(next, url)).toEqual(['MEANWHILE']);
});
