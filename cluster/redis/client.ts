import { Redis } from 'ioredis';
import { endAtEndlessAnswers } from './broken-connections.ts';

/** A command without an answer within this time fails. */
const commandTimeoutMs = 500;
/** A connection that has answered nothing for this time, three times that of a command, is replaced. */
const silentMaxMs = 1_500;
/** How long the end of a connection may take. Redis has nothing to say any more that a node waits for. */
const disconnectMaxMs = 100;
const reconnectMaxMs = 1_000;
const connectMaxMs = 3_000;

/**
 * Creates a client for leases, members and news. Nodes repeat all of these, so a command that Redis cannot answer now
 * fails at once: commands are not queued during an outage and sent to another Redis master later, and none is sent
 * twice. `failed` is called for each connection error.
 */
export function createRedis(url: string, failed: (error: Error) => void): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // The news listener subscribes by itself: a failure of ioredis's own attempt would be an unhandled rejection.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    commandTimeout: commandTimeoutMs,
    socketTimeout: silentMaxMs,
    connectTimeout: connectMaxMs,
    disconnectTimeout: disconnectMaxMs,
    lazyConnect: true,
    retryStrategy: (times) => Math.min(times * 50, reconnectMaxMs),
  });
  redis.on('error', (error) => failed(withoutArguments(error)));
  endAtEndlessAnswers(redis);
  return redis;
}

/** Removes the command from an error: that of a refused AUTH holds the password. */
function withoutArguments(error: Error): Error {
  if ('command' in error) delete error.command;
  return error;
}

/** Connects. Returns false if Redis does not answer now. The client then keeps trying in the background. */
export async function connectRedis(redis: Redis): Promise<boolean> {
  try {
    await redis.connect();
    return true;
  } catch {
    return false;
  }
}
