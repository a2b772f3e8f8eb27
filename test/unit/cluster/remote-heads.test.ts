import { expect, test } from 'vitest';
import { HeadSubscribers } from '../../../cluster/peers/head-subscribers.ts';
import { NodeHeads } from '../../../cluster/peers/remote-heads.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import { ledgerId } from '../../support/commands.ts';
import { nodePort, peersAt } from '../../support/peer-ports.ts';

/** Node-b, which follows ledgers that node-a owns, and all that it has heard. */
function follower(where: { port: number | null }, owner: () => string | null = () => 'node-a') {
  const heard: [string, number][] = [];
  const clock = new ManualClock(0);
  const peers = peersAt(where, { heard: (id, seq) => heads.heard(id, seq) });
  const heads: NodeHeads = new NodeHeads({
    self: 'node-b',
    shardCount: 16,
    placement: { locate: async () => owner() },
    subscribers: new HeadSubscribers(),
    clock,
    headsFrom: (node) => peers.headsFrom(node),
  });
  heads.listen((id, seq) => void heard.push([id, seq]));
  return { heads, heard, clock };
}

/** Commits until the follower has heard of it: a stream is opened in its own time. */
async function untilHeard(subscribers: HeadSubscribers, { heard, clock }: ReturnType<typeof follower>, seq: number) {
  await expect
    .poll(() => {
      clock.advance(1_000);
      subscribers.committed(ledgerId, seq);
      return heard.at(-1);
    })
    .toEqual([ledgerId, seq]);
}

test('the owner of a followed ledger tells the node of its commits, and of no other ledger', async () => {
  const subscribers = new HeadSubscribers();
  const { port } = await nodePort({ subscribers });
  const node = follower({ port });
  using _subscription = node.heads.subscribe(ledgerId);
  await untilHeard(subscribers, node, 5);
  subscribers.committed('another ledger', 1);
  subscribers.committed(ledgerId, 6);
  subscribers.committed(ledgerId, 7);
  await expect.poll(() => node.heard.at(-1)).toEqual([ledgerId, 7]);
  // The commits of one turn make one message, with the newest head of each ledger.
  expect(node.heard.filter(([, seq]) => seq > 5)).toEqual([[ledgerId, 7]]);
});

test('an owner to whom no stream can be opened is asked again', async () => {
  const clock = new ManualClock(0);
  let asked = 0;
  const heads = new NodeHeads({
    self: 'node-b',
    shardCount: 16,
    placement: { locate: async () => 'node-a' },
    subscribers: new HeadSubscribers(),
    clock,
    headsFrom: () => {
      asked += 1;
      throw new Error('the certificate cannot be read');
    },
  });
  using _subscription = heads.subscribe(ledgerId);
  for (let look = 1; look <= 3; look += 1) {
    await settled();
    expect(asked).toBe(look);
    clock.advance(1_000);
  }
});

test('a node that follows the ledger no more is told nothing', async () => {
  const subscribers = new HeadSubscribers();
  const { port } = await nodePort({ subscribers });
  const node = follower({ port });
  const subscription = node.heads.subscribe(ledgerId);
  await untilHeard(subscribers, node, 5);
  subscription[Symbol.dispose]();
  await expect
    .poll(() => {
      const before = node.heard.length;
      subscribers.committed(ledgerId, 6);
      return new Promise((resolve) => setTimeout(() => resolve(node.heard.length - before), 50));
    })
    .toBe(0);
});

test('only what is the id of a ledger is watched', async () => {
  const subscribers = new HeadSubscribers();
  const told: string[] = [];
  using stream = subscribers.open((heads) => told.push(...heads.map((head) => head.ledgerId)) > 0);
  const long = 'a'.repeat(2 ** 20);
  for (const id of [long, ledgerId]) stream.add(id);
  for (const id of [long, ledgerId]) subscribers.committed(id, 1);
  await expect.poll(() => told).toEqual([ledgerId]);
});

test('an owner that was lost is asked again at its new address', async () => {
  const subscribers = new HeadSubscribers();
  const first = await nodePort({ subscribers: new HeadSubscribers() });
  const where: { port: number | null } = { port: first.port };
  const node = follower(where);
  using _subscription = node.heads.subscribe(ledgerId);
  await first.close();
  where.port = (await nodePort({ subscribers })).port;
  await untilHeard(subscribers, node, 8);
});
