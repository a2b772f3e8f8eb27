import type { Redis } from 'ioredis';
import { isUuid } from '../../src/domain/values/uuid-form.ts';
import type { MetBadValue } from './bad-values.ts';

/**
 * Tells other nodes that a delivery may be due. Messages may be lost: each node also looks by itself a little later.
 */
export interface News {
  tell(subscriptionId: string): void;
  /** Calls `heard` for each message from now on, this node's own included. Call it once. */
  listen(heard: (subscriptionId: string) => void): void;
  close(): void;
}

/** At most this many commands wait for Redis when news is told. Further news is lost. */
const waitingMax = 1_000;
/** A connection that listens sends nothing else, so that its silence would go unnoticed. */
const pingEveryMs = 2_000;

/**
 * News over the Redis channel `news:{placement}`. `listener`: a connection for this only. Bad messages go to `met`, and
 * what is thrown where a message is heard to `failed`.
 */
export function redisNews(
  redis: Redis,
  listener: Redis,
  placement: string,
  met: MetBadValue = () => {},
  failed: (error: unknown) => void = throwLater,
): News {
  const channel = `news:{${placement}}`;
  let pings: NodeJS.Timeout | undefined;
  return {
    tell: (text) => {
      if (redis.commandQueue.length < waitingMax) redis.publish(channel, text).catch(() => {});
    },
    listen: (heard) => {
      listener.on('message', (_channel, text) => {
        // An error of this node that was thrown on would count as bytes that no Redis sends, and end the connection.
        try {
          if (isUuid(text)) heard(text);
          else met('news', channel);
        } catch (error) {
          failed(error);
        }
      });
      const subscribe = () => void listener.subscribe(channel).catch(() => {});
      listener.on('ready', subscribe);
      void listener.connect().catch(() => {});
      pings = setInterval(() => void listener.ping().catch(() => {}), pingEveryMs).unref();
    },
    close: () => {
      clearInterval(pings);
      listener.disconnect();
    },
  };
}

/** As of any other error that nothing catches. */
function throwLater(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
