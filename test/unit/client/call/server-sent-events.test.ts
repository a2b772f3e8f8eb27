import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type ServerSentEvent, serverSentEvents } from '../../../../src/client/call/server-sent-events.ts';

async function read(body: Uint8Array, chunkBytes: number, charsMax?: number): Promise<ServerSentEvent[]> {
  async function* chunks() {
    for (let from = 0; from < body.length; from += chunkBytes) yield body.subarray(from, from + chunkBytes);
  }
  return Array.fromAsync(serverSentEvents(chunks(), charsMax));
}

/** The same, by a library. */
function readByLibrary(body: Uint8Array): ServerSentEvent[] {
  const events: ServerSentEvent[] = [];
  const onEvent = ({ event, data }: { event?: string | undefined; data: string }) =>
    void events.push({ event: event ?? 'message', data });
  createParser({ onEvent }).feed(new TextDecoder().decode(body));
  return events;
}

const piece = fc.constantFrom(
  'event',
  'data',
  'id',
  'retry',
  ':',
  ': ',
  ' ',
  '\n',
  '\n\n',
  '\r\n',
  '\r\n\r\n',
  '\r',
  '\r\r',
  'data: {"a":1}\n',
  'event: heartbeat\n',
  'ü€𝄞',
  '\u2028',
);

test('any body, in chunks of any size, is read as a library reads it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 40 }), fc.integer({ min: 1, max: 30 }), async (pieces, bytes) => {
      // A line end that may go on is not decided at the end of a body.
      const body = new TextEncoder().encode(`${pieces.join('')}.`);
      expect(await read(body, bytes)).toEqual(readByLibrary(body));
    }),
    { numRuns: 2_000 },
  );
});

test('an event ends with its blank line, whatever follows', async () => {
  const body = new TextEncoder().encode('\uFEFFevent: a\r\ndata: 1\r\ndata:2\r\n\r\ndata: cut');
  expect(await read(body, 1)).toEqual([{ event: 'a', data: '1\n2' }]);
});

test('an event that is longer than the bound is refused before it has ended', async () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  await expect(read(bytes(`data: ${'x'.repeat(100)}`), 7, 90)).rejects.toThrow('at most 90 characters');
  await expect(read(bytes('data: xxxx\n'.repeat(10)), 7, 90)).rejects.toThrow('at most 90 characters');
  expect(await read(bytes('data: xxxx\n\n'.repeat(10)), 7, 90)).toHaveLength(10);
});
