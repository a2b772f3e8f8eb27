import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { invalidAnswer } from '../error.ts';

/** An event of some 600 KiB and its integrity, with much reserve. Characters. */
const EVENT_MAX_CHARS = 16 * 1024 * 1024;

/** The server-sent events of a body, as they arrive. An event that the body ends within is left out. */
export async function* serverSentEvents(chunks: AsyncIterable<Uint8Array>): AsyncIterable<EventSourceMessage> {
  const decoder = new TextDecoder();
  const parsed: EventSourceMessage[] = [];
  let isTooLong = false;
  const parser = createParser({
    maxBufferSize: EVENT_MAX_CHARS,
    onEvent: (event) => void parsed.push(event),
    onError: ({ type }) => {
      isTooLong ||= type === 'max-buffer-size-exceeded';
    },
  });
  for await (const chunk of chunks) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* parsed.splice(0);
    if (isTooLong) throw invalidAnswer('A server-sent event', `of at most ${EVENT_MAX_CHARS} characters`);
  }
}
