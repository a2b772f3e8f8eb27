import { type ClientRequest, get } from 'node:http';
import { afterMs } from '../../../cluster/local/ports.ts';
import type { SeededRandom } from '../../simulation/random.ts';

/** Three heartbeats. */
const silenceMaxMs = 45_000;
const retryMinMs = 100;
const retryMaxMs = 1_000;
const blockEnd = '\n\n';
const eventName = '\nevent: event\n';
const errorName = '\nevent: error\n';
const hashField = '"hash":"';
const hashLength = 64;

interface StreamReaderParts {
  /** The address of the stream, which may refuse connections for a while. */
  readonly url: URL;
  readonly apiKey: string;
  readonly random: SeededRandom;
  event(seq: number, hash: string): void;
  /** Called before each further connection. */
  again(): void;
  /** Called with what no reader may ever be told. */
  broken(what: string): void;
}

/**
 * Reads server-sent events and resumes with `Last-Event-ID`, with nothing of the client's code. It hands on everything
 * that comes, in the order in which it comes, so that a gap or a repetition of the service is seen.
 */
export class StreamReader {
  readonly #parts: StreamReaderParts;
  #lastId: string | null = null;
  #request: ClientRequest | null = null;
  #isStopped = false;

  constructor(parts: StreamReaderParts) {
    this.#parts = parts;
  }

  /** Resolves when it was stopped. */
  async run(): Promise<void> {
    const { random, again } = this.#parts;
    while (!this.#isStopped) {
      await this.#readOnce();
      if (this.#isStopped) return;
      again();
      await afterMs(random.between(retryMinMs, retryMaxMs));
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#request?.destroy();
  }

  /** Resolves when the stream has ended, for whatever reason. */
  #readOnce(): Promise<void> {
    const { url, apiKey, broken } = this.#parts;
    const headers = {
      authorization: `Bearer ${apiKey}`,
      accept: 'text/event-stream',
      ...(this.#lastId === null ? {} : { 'last-event-id': this.#lastId }),
    };
    return new Promise((resolve) => {
      const request = get(url, { headers, agent: false, timeout: silenceMaxMs }, (answer) => {
        const { statusCode = 0 } = answer;
        if (statusCode !== 200 && statusCode !== 503 && statusCode !== 429)
          broken(`a stream was answered ${statusCode}`);
        let rest = '';
        // What is looked for is ASCII.
        answer.setEncoding('latin1');
        answer.on('data', (chunk: string) => {
          if (statusCode === 200) rest = this.#take(rest + chunk);
        });
        answer.on('error', () => {}).on('close', resolve);
      });
      request.on('timeout', () => request.destroy()).on('error', () => resolve());
      this.#request = request;
    });
  }

  /** Takes whole blocks. Returns what is left. */
  #take(text: string): string {
    let from = 0;
    for (let end = text.indexOf(blockEnd); end >= 0; end = text.indexOf(blockEnd, from)) {
      this.#takeBlock(text.slice(from, end));
      from = end + blockEnd.length;
    }
    return text.slice(from);
  }

  #takeBlock(block: string): void {
    const { event, broken } = this.#parts;
    if (block.startsWith('id: ')) this.#lastId = block.slice('id: '.length, block.indexOf('\n'));
    if (block.includes(eventName)) {
      const at = block.indexOf(hashField) + hashField.length;
      event(Number(this.#lastId), block.slice(at, at + hashLength));
      if (!block.includes('"integrity":{"verified":true')) broken(`an event was sent with issues: ${block}`);
    }
    if (`\n${block}`.includes(errorName) && !block.includes('"code":"unavailable"')) broken(`a stream ended: ${block}`);
  }
}
