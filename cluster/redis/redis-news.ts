import type { Redis } from 'ioredis';

/** What nodes tell each other without anything depending on it: whoever does not hear it looks by itself a little later. */
export interface News {
  tell(text: string): void;
  /** Called once. */
  listen(heard: (text: string) => void): void;
  close(): void;
}

/** News over a channel of Redis, `news:{placement}`; `listener` is a connection for this alone. */
export function redisNews(redis: Redis, listener: Redis, placement: string): News {
  const channel = `news:{${placement}}`;
  return {
    tell: (text) => void redis.publish(channel, text).catch(() => {}),
    listen: (heard) => {
      listener.on('message', (_channel, text) => heard(text));
      const subscribe = () => void listener.subscribe(channel).catch(() => {});
      listener.on('ready', subscribe);
      void listener.connect().catch(() => {});
    },
    close: () => listener.disconnect(),
  };
}
