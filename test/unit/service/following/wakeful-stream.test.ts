import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { WakefulStream } from '../../../../src/service/following/wakeful-stream.ts';

/** A stream of what is put into it. */
class Texts extends WakefulStream<string> {
  endings = 0;
  /** What `find` returns next. */
  readonly found: (string | Promise<string>)[] = [];

  put(...found: (string | Promise<string>)[]): void {
    this.found.push(...found);
    this.wake();
  }

  protected override async find(): Promise<string> {
    return this.found.shift() ?? 'wait';
  }

  protected override ended(): void {
    this.endings += 1;
  }

  protected override failure(error: unknown): unknown {
    return new Error(`the stream failed: ${error}`);
  }
}

test('answers are sent in order, each once, until there are no more', async () => {
  const stream = new Texts();
  const sent: string[] = [];
  stream.put('a', 'b');
  const over = stream.sendTo((text) => void sent.push(text));
  await setImmediate();
  expect(sent).toEqual(['a', 'b']);
  stream.put('c', 'end', 'd');
  await over;
  expect([sent, stream.endings]).toEqual([['a', 'b', 'c'], 1]);
});

test('while the reader takes nothing nothing is sent, and a wake-up meanwhile is not lost', async () => {
  const stream = new Texts();
  const sent: string[] = [];
  const { promise: room, resolve: take } = Promise.withResolvers<void>();
  const over = stream.sendTo((text) => {
    sent.push(text);
    return room;
  });
  stream.put('a');
  await setImmediate();
  stream.put('b');
  await setImmediate();
  expect(sent).toEqual(['a']);
  take();
  await setImmediate();
  expect(sent).toEqual(['a', 'b']);
  stream.stop();
  stream.stop();
  await over;
  expect(stream.endings).toBe(1);
});

test('what is found behind the end is dropped, an error too', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  for (const outcome of ['answer', 'error']) {
    const stream = new Texts();
    const sent: string[] = [];
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    stream.put(promise);
    const over = stream.sendTo((text) => void sent.push(text));
    await setImmediate();
    stream.stop();
    if (outcome === 'answer') resolve('late');
    else reject(new Error('late'));
    await over;
    await setImmediate();
    expect([sent, stream.endings]).toEqual([[], 1]);
  }
  expect(unhandled).toEqual([]);
});

test('an error of a look or of the sender ends the stream with what it stands for', async () => {
  const failing = new Texts();
  failing.put(Promise.reject(new Error('no answer')));
  await expect(failing.sendTo(() => undefined)).rejects.toThrow('the stream failed: Error: no answer');
  const unsent = new Texts();
  unsent.put('a', 'b');
  let calls = 0;
  const send = (): undefined => {
    calls += 1;
    throw new TypeError('not encoded');
  };
  await expect(unsent.sendTo(send)).rejects.toThrow('the stream failed: TypeError: not encoded');
  expect([calls, failing.endings, unsent.endings]).toEqual([1, 1, 1]);
});

test('a stream that was stopped before it began sends nothing', async () => {
  const stream = new Texts();
  stream.put('a');
  stream.stop();
  await stream.sendTo(() => expect.unreachable());
  expect(stream.endings).toBe(1);
});
