import { describe, expect, test } from 'vitest';
import { messageBytesMax, messageItemsMax } from '../../../cluster/peers/exchange-method.ts';
import { Outgoing } from '../../../cluster/peers/outgoing.ts';

const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

/** Items are their own sizes; the other side reads on after each message while `reads.on`. */
function outgoing(open = true) {
  const messages: number[][] = [];
  const reads = { on: true };
  const write = (items: number[]) => {
    messages.push(items);
    return reads.on;
  };
  return { messages, reads, out: new Outgoing<number>({ write }, (bytes) => bytes, open) };
}

describe('what goes to another node', () => {
  test('in one iteration of the event loop goes in one message, in order', async () => {
    const { messages, out } = outgoing();
    for (const item of [1, 2, 3]) out.push(item);
    expect(messages).toEqual([]);
    await nextIteration();
    out.push(4);
    await nextIteration();
    expect(messages).toEqual([[1, 2, 3], [4]]);
  });

  test(`is at most ${messageItemsMax} items a message`, async () => {
    const { messages, out } = outgoing();
    for (let item = 0; item < messageItemsMax + 2; item++) out.push(item);
    await nextIteration();
    expect(messages.map(({ length }) => length)).toEqual([messageItemsMax, 2]);
    expect(messages[1]).toEqual([messageItemsMax, messageItemsMax + 1]);
  });

  test('is at most as many bytes a message as agreed, unless one alone is more', async () => {
    const { messages, out } = outgoing();
    const [half, over] = [messageBytesMax / 2, messageBytesMax + 1];
    for (const item of [half, half, 1, over, 2]) out.push(item);
    await nextIteration();
    expect(messages).toEqual([[half, half], [1], [over], [2]]);
  });

  test('waits while the other side does not read', async () => {
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

  test('waits for a connection that is not open yet', async () => {
    const { messages, out } = outgoing(false);
    out.push(1);
    await nextIteration();
    expect(messages).toEqual([]);
    out.drained();
    expect(messages).toEqual([[1]]);
  });
});
