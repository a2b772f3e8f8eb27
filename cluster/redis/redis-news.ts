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

/** News over the Redis channel `news:{placement}`. `listener`: a connection for this only. Bad messages go to `met`. */
export function redisNews(redis: Redis, listener: Redis, placement: string, met: MetBadValue = () => {}): News {
  const channel = `news:{${placement}}`;
  let pings: NodeJS.Timeout | undefined;
  return {
    tell: (text) => {
      if (redis.commandQueue.length < waitingMax) redis.publish(channel, text).catch(() => {});
    },
    listen: (heard) => {
      listener.on('message', (_channel, text) => (isUuid(text) ? heard(text) : met('news', channel)));
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
