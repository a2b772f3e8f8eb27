import { FairQueue } from '../../src/webhooks/send/fair-queue.ts';
import { ManualClock } from './clock.ts';

export interface TestQueue {
  readonly owner: string;
  readonly origin: string;
}

/** A fair queue under a clock that the test moves. */
export function fairQueueRig() {
  const clock = new ManualClock(0);
  /** The attempts that began. A test removes those that it ends. */
  const sending: { queue: TestQueue; atMs: number }[] = [];
  /** Begins attempts while there are slots. */
  const fill = () => {
    for (let next = fair.next(); next !== null; next = fair.next()) {
      const queue = fair.begin(next);
      sending.push({ queue, atMs: clock.now() });
      began(queue);
    }
  };
  let began = (_queue: TestQueue): void => {};
  const fair = new FairQueue<TestQueue>({ clock, freed: fill });
  const ready = (owner: string, origin: string): TestQueue => {
    const queue = { owner, origin };
    fair.ready(queue);
    return queue;
  };
  const end = (queue: TestQueue, result: number | 'no_answer') => {
    fair.end(queue, result);
    fill();
  };
  /** Makes a target known as one that answers quickly. */
  const prove = (owner: string, origin: string) => {
    ready(owner, origin);
    fill();
    for (const { queue } of sending.splice(0)) fair.end(queue, 5);
  };
  /** Each attempt of these queues lasts until its timeout. Then the queue is ready again. */
  const dead = (isDead: (queue: TestQueue) => boolean) => {
    began = (queue) => {
      if (!isDead(queue)) return;
      clock.after(10_000, () => {
        fair.end(queue, 'no_answer');
        fair.ready(queue);
        fill();
      });
    };
  };
  const countOf = (owner: string) => sending.filter(({ queue }) => queue.owner === owner).length;
  return { clock, fair, sending, fill, ready, end, prove, dead, countOf };
}
