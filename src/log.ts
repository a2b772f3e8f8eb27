import { type DestinationStream, pino } from 'pino';
import type { LogLevel } from './config.ts';

/** What the log of the service can do: one JSON object a line. Never hand it keys, secrets or payloads. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** Whether lines of the level are written: saves making them. */
  isLevelEnabled(level: string): boolean;
}

/**
 * The log at a level, to `destination` (standard output if none is given). Lines are written without waiting for each;
 * at most 50 ms of them are lost if the process is killed.
 */
export function createLog(level: LogLevel, destination?: DestinationStream): Log {
  const stream = destination ?? pino.destination({ dest: 1, sync: false, minLength: 4096, periodicFlush: 50 });
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
}
