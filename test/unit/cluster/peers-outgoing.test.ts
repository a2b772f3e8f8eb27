import { describe, expect, test } from 'vitest';
import { messageBytesMax, messageItemsMax } from '../../../cluster/peers/exchange-method.ts';
import { Outgoing } from '../../../cluster/peers/outgoing.ts';

const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

/** Items are their own sizes. The other side reads while `reads.on`. */
function outgoing(open = true) {
  const messages: number[][] = [];
  const reads = { on: true };
  const write = (items: number[]) => {
    messages.push(items);
    return reads.on;
  };
  return { messages, reads, out: new Outgoing(write, (bytes) => bytes, open) };
}

describe('the items for another node', () => {
  test('of one iteration of the event loop go in one message, in order', async () => {
    const { messages, out } = outgoing();
    for (const item of [1, 2, 3]) out.push(item);
    expect(messages).toEqual([]);
    await nextIteration();
    out.push(4);
    await nextIteration();
    expect(messages).toEqual([[1, 2, 3], [4]]);
  });

  test(`go in messages of at most ${messageItemsMax} items`, async () => {
    const { messages, out } = outgoing();
    for (let item = 0; item < messageItemsMax + 2; item++) out.push(item);
    await nextIteration();
    expect(messages.map(({ length }) => length)).toEqual([messageItemsMax, 2]);
    expect(messages[1]).toEqual([messageItemsMax, messageItemsMax + 1]);
  });

  test('go in messages of bounded bytes, unless one item alone is larger', async () => {
    const { messages, out } = outgoing();
    const [half, over] = [messageBytesMax / 2, messageBytesMax + 1];
    for (const item of [half, half, 1, over, 2]) out.push(item);
    await nextIteration();
    expect(messages).toEqual([[half, half], [1], [over], [2]]);
  });

  test('wait while the other side does not read', async () => {
    const { messages, reads, out } = outgoing();
    reads.on = false;
    out.push(1);
    await nextIteration();
    for (const item of [2, 3]) out.push(item);
    await nextIteration();
    expect([messages, out.size, out.isOpen]).toEqual([[[1]], 2, false]);
    reads.on = true;
    out.drained();
    expect([messages, out.size]).toEqual([[[1], [2, 3]], 0]);
  });

  test('wait for the connection', async () => {
    const { messages, out } = outgoing(false);
    out.push(1);
    await nextIteration();
    expect(messages).toEqual([]);
    out.drained();
    expect(messages).toEqual([[1]]);
  });
});
