import type { Fields } from './parties-rest.ts';

/** A server-sent event, as EventSource would report it. */
interface LiveEvent {
  readonly id: string | null;
  readonly event: string;
  readonly data: Fields;
}

/** A stream of server-sent events, read by hand. */
export interface LiveEvents extends AsyncDisposable {
  readonly status: number;
  readonly headers: Headers;
  /** The body as it came. */
  readonly raw: () => string;
  /** All events so far. */
  readonly all: readonly LiveEvent[];
  /** The next event that no call has returned; throws after five seconds, and null at the end. */
  next(): Promise<LiveEvent | null>;
  /** The next ones, up to and with the first of this name. */
  through(event: string): Promise<LiveEvent[]>;
  /** Resolves with all events once the stream has ended. */
  ended(): Promise<readonly LiveEvent[]>;
}

export async function liveEvents(
  base: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<LiveEvents> {
  const leave = new AbortController();
  const response = await fetch(`${base}${path}`, {
    headers: { accept: 'text/event-stream', ...headers },
    signal: leave.signal,
  });
  const all: LiveEvent[] = [];
  let text = '';
  let taken = 0;
  let isEnded = false;
  let wake = () => {};
  const read = async () => {
    let unread = '';
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body ?? []) {
        const part = decoder.decode(chunk as Uint8Array, { stream: true });
        text += part;
        unread += part;
        for (let end = unread.indexOf('\n\n'); end >= 0; end = unread.indexOf('\n\n')) {
          const event = eventOf(unread.slice(0, end));
          unread = unread.slice(end + 2);
          if (event !== null) all.push(event);
        }
        wake();
      }
    } catch (error) {
      if (!leave.signal.aborted) throw error;
    } finally {
      isEnded = true;
      wake();
    }
  };
  const reading = read();
  reading.catch(() => {});
  const more = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`no event in five seconds; so far: ${text}`)), 5_000);
      wake = () => {
        clearTimeout(late);
        resolve();
      };
    });
  const next = async (): Promise<LiveEvent | null> => {
    while (taken === all.length && !isEnded) await more();
    return all[taken++] ?? null;
  };
  return {
    status: response.status,
    headers: response.headers,
    raw: () => text,
    all,
    next,
    async through(name) {
      const found: LiveEvent[] = [];
      for (;;) {
        const event = await next();
        if (event === null) throw new Error(`the stream ended before ${name}: ${text}`);
        found.push(event);
        if (event.event === name) return found;
      }
    },
    async ended() {
      while (!isEnded) await more();
      await reading;
      return all;
    },
    async [Symbol.asyncDispose]() {
      leave.abort();
      await reading.catch(() => {});
    },
  };
}

/** null for a block without data. */
function eventOf(block: string): LiveEvent | null {
  let id: string | null = null;
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (field === 'id') id = value;
    if (field === 'event') event = value;
    if (field === 'data') data.push(value);
  }
  return data.length === 0 ? null : { id, event, data: JSON.parse(data.join('\n')) as Fields };
}
