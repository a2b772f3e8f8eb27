import { Redis } from 'ioredis';

/** An answer that takes longer than this is none. */
const commandTimeoutMs = 500;
const reconnectMaxMs = 1_000;
const connectMaxMs = 3_000;

/**
 * A client for leases, members and news, which are all told anew if they are lost. Whatever Redis cannot answer now fails now: nothing is
 * queued through an outage and played to another master later, nothing is sent twice.
 */
export function createRedis(url: string, failed: (error: Error) => void): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // Whoever listens subscribes on each new connection; nobody would hear how ioredis's own try ended, and Node ends a process for that.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    commandTimeout: commandTimeoutMs,
    connectTimeout: connectMaxMs,
    lazyConnect: true,
    retryStrategy: (times) => Math.min(times * 50, reconnectMaxMs),
  });
  redis.on('error', (error) => failed(withoutArguments(error)));
  return redis;
}

/** A refused AUTH carries the password among the arguments of its command. */
function withoutArguments(error: Error): Error {
  if ('command' in error) delete error.command;
  return error;
}

/** Connects; a Redis that is not there now is tried again and again, without anybody waiting for it. */
export async function connectRedis(redis: Redis): Promise<boolean> {
  try {
    await redis.connect();
    return true;
  } catch {
    return false;
  }
}
