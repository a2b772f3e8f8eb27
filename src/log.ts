import { type DestinationStream, pino } from 'pino';
import type { LogLevel } from './config.ts';
import { type Redact, redaction } from './runtime/redaction.ts';

/** What the log of the service can do: one JSON object a line. Secrets in it are redacted; never hand it payloads. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** Whether lines of the level are written: saves making them. */
  isLevelEnabled(level: string): boolean;
}

/** A line waits no longer than this for others to be written with. */
const lineWaitMaxMs = 50;
/** As much as this is written at once, bytes. */
const writtenAtOnceMin = 4_096;

/**
 * The log at a level, to `destination` (standard output if none is given). `redact` takes secrets out of each line, whatever its level. Lines are written without waiting for each;
 * at most 50 ms of them are lost if the process is killed.
 */
export function createLog(
  level: LogLevel,
  destination: DestinationStream = bufferedLines(1),
  redact: Redact = redaction(),
): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line) => destination.write(redact(line)) },
  );
}

/**
 * Collects lines for a file (a path, or the number of an open one). SonicBoom's own periodic flush is not used: with nothing to write it
 * writes an empty text, and waking a thread for that 20 times a second took 3 % of a saturated main thread.
 */
export function bufferedLines(file: number | string): DestinationStream {
  const output = pino.destination({ dest: file, sync: false, minLength: writtenAtOnceMin });
  let isFlushDue = false;
  let waitingBytes = 0;
  output.on('write', (written: number) => {
    waitingBytes -= written;
  });
  const flushSoon = (): void => {
    if (isFlushDue) return;
    isFlushDue = true;
    setTimeout(flush, lineWaitMaxMs).unref();
  };
  // While a write is under way SonicBoom flushes nothing: what came behind it is looked after again.
  const flush = (): void => {
    isFlushDue = false;
    if (waitingBytes === 0) return;
    output.flush();
    flushSoon();
  };
  return {
    write(line) {
      waitingBytes += Buffer.byteLength(line);
      output.write(line);
      flushSoon();
    },
  };
}
