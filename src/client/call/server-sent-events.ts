import { invalidAnswer } from '../error.ts';

/** An event of some 600 KiB and its integrity, with much reserve. Characters. */
const EVENT_MAX_CHARS = 16 * 1024 * 1024;

export interface ServerSentEvent {
  /** `message` where the stream names none. */
  readonly event: string;
  readonly data: string;
}

/**
 * The server-sent events of a body, as they arrive. An event that the body ends within is left out, as are `id` and
 * `retry`, which the client does not use. Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export async function* serverSentEvents(
  chunks: AsyncIterable<Uint8Array>,
  charsMax = EVENT_MAX_CHARS,
): AsyncIterable<ServerSentEvent> {
  let event = '';
  let data: string[] = [];
  let chars = 0;
  for await (const { text, hasEnded } of linesOf(chunks)) {
    if (chars + text.length > charsMax) throw invalidAnswer('A server-sent event', `of at most ${charsMax} characters`);
    if (!hasEnded) continue;
    chars += text.length;
    if (text === '') {
      if (data.length > 0) yield { event: event || 'message', data: data.join('\n') };
      event = '';
      data = [];
      chars = 0;
      continue;
    }
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(text) ?? [];
    if (field === 'event') event = value;
    else if (field === 'data') data.push(value);
  }
}

interface Line {
  readonly text: string;
  readonly hasEnded: boolean;
}

/** The lines of a body, each as soon as it has ended, and the begun one after each chunk. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Line> {
  const decoder = new TextDecoder();
  let begun = '';
  let heldBack = '';
  for await (const chunk of chunks) {
    const text = heldBack + decoder.decode(chunk, { stream: true });
    // It may be half of a line end.
    heldBack = text.endsWith('\r') ? '\r' : '';
    const lines = text.slice(0, text.length - heldBack.length).split(/\r\n|\n|\r/);
    lines[0] = begun + (lines[0] ?? '');
    begun = lines.pop() ?? '';
    for (const line of lines) yield { text: line, hasEnded: true };
    yield { text: begun, hasEnded: false };
  }
}
