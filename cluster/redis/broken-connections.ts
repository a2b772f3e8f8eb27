import type { Redis } from 'ioredis';
import dataHandler from 'ioredis/built/DataHandler.js';

/** More than the owners of the most shards take, which is the longest answer. */
const answerBytesMax = 16 * 1024 * 1024;

/** What ioredis does with the bytes of a connection (built/DataHandler.js). */
interface DataHandler {
  readonly redis: Pick<Redis, 'stream' | 'commandQueue'>;
  /** Tells an answer to whom it is for. */
  dispatch(tell: () => void): void;
  /** Returns the command that an answer is for. */
  shiftCommand(answer: unknown): unknown;
  /** Makes the client connect anew, since bytes could not be parsed. */
  returnFatalError(error: Error): void;
}

/** How many bytes of a connection had come when its last answer was complete. */
const answeredAt = new WeakMap<Redis['stream'], number>();

const { prototype } = dataHandler.default as unknown as { readonly prototype: DataHandler };
const { shiftCommand, returnFatalError } = prototype;

/**
 * An answer of a form that ioredis does not expect fails while it is told. ioredis 6.0.0 throws that again where
 * nothing catches it, so that bytes end the process. Thrown to its parser, it ends the connection as bytes do that
 * cannot be parsed.
 */
prototype.dispatch = function (tell) {
  const { stream } = this.redis;
  answeredAt.set(stream, stream.bytesRead);
  tell();
};

/** After an answer that nobody asked for, each answer may be that of the command before. */
prototype.shiftCommand = function (answer) {
  if (this.redis.commandQueue.length === 0) throw new Error('Redis answers what nobody asked for');
  return shiftCommand.call(this, answer);
};

/** Nothing is read any more from a connection that has brought such bytes. */
prototype.returnFatalError = function (error) {
  this.redis.stream.destroy();
  returnFatalError.call(this, error);
};

/** Ends each connection of a client that brings more bytes without the end of an answer than any answer has. */
export function endAtEndlessAnswers(redis: Redis): void {
  redis.on('connect', () => {
    const { stream } = redis;
    stream.on('data', () => {
      if (stream.bytesRead - (answeredAt.get(stream) ?? 0) > answerBytesMax)
        stream.destroy(new Error('an answer of Redis has no end'));
    });
  });
}
