import type { Redis } from 'ioredis';
import { isUuid } from '../../src/domain/uuid.ts';
import type { MetBadValue } from './bad-values.ts';

/** Ids of subscriptions that nodes tell each other, without anything depending on it: a node that does not hear one looks by itself a little later. */
export interface News {
  tell(subscriptionId: string): void;
  /** Called once. */
  listen(heard: (subscriptionId: string) => void): void;
  close(): void;
}

/** News over a channel of Redis, `news:{placement}`; `listener` is a connection for this alone. What is no id is passed over and told to `met`. */
export function redisNews(redis: Redis, listener: Redis, placement: string, met: MetBadValue = () => {}): News {
  const channel = `news:{${placement}}`;
  return {
    tell: (text) => void redis.publish(channel, text).catch(() => {}),
    listen: (heard) => {
      listener.on('message', (_channel, text) => (isUuid(text) ? heard(text) : met('news', channel)));
      const subscribe = () => void listener.subscribe(channel).catch(() => {});
      listener.on('ready', subscribe);
      void listener.connect().catch(() => {});
    },
    close: () => listener.disconnect(),
  };
}
