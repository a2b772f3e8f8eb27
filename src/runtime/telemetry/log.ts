import fs from 'node:fs';
import { type DestinationStream, pino } from 'pino';
import { LineWriter, type WriteChunk, waitingLinesMaxBytes } from './line-writer.ts';
import { type Redact, redaction } from './redaction.ts';

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'silent';

/** One JSON object a line. Secrets are redacted. Never pass payloads to it. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** Lets callers skip making a line. */
  isLevelEnabled(level: string): boolean;
}

export interface NodeLog extends Log {
  /** No reader took them in time, or they could not be written. */
  linesDropped(): number;
  /** Call it before the process ends. Resolves when all lines are written, or after a second. */
  end(): Promise<void>;
}

const endMaxMs = 1_000;

/**
 * A log to `destination`. `redact` removes secrets from every line. Writes are not waited for: at most 50 ms of lines
 * are lost if the process is killed. If no reader reads, lines are dropped.
 */
export function createLog(
  level: LogLevel,
  destination: DestinationStream = bufferedLines(1),
  redact: Redact = redaction(),
): NodeLog {
  const log = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line) => destination.write(redact(line)) },
  );
  const writer = destination instanceof LineWriter ? destination : null;
  if (writer !== null)
    writer.tellDropped = (lines) =>
      log.error({ lines }, 'lines of the log were dropped: nobody read them in time, or they could not be written');
  return Object.assign(log, {
    linesDropped: () => writer?.dropped ?? 0,
    end: async () => writer?.end(endMaxMs),
  });
}

/** `file`: a path, or 1 for the standard output. It is opened with the first line. */
export function bufferedLines(file: 1 | string): LineWriter {
  let write: WriteChunk | null = null;
  const open = (): WriteChunk => {
    if (file !== 1) return toFile(fs.openSync(file, 'a'));
    process.once('exit', () => writeRest(writer));
    return isFile(1) ? toFile(1) : toStdout;
  };
  const writer = new LineWriter(
    (chunk, done) => {
      write ??= open();
      write(chunk, done);
    },
    waitingLinesMaxBytes,
    isWithoutReader,
  );
  return writer;
}

/** Node writes to pipes and sockets without blocking a thread, which could not be ended while no reader reads. */
const toStdout: WriteChunk = (chunk, done) => {
  process.stdout.write(chunk, (error) => done(error ?? null));
};

/** A line that was written in part is ended before the next chunk. */
function toFile(handle: number): WriteChunk {
  let isTorn = false;
  return (chunk, done) => {
    const bytes = isTorn ? Buffer.concat([Buffer.from('\n'), chunk]) : chunk;
    const from = (at: number): void =>
      fs.write(handle, bytes, at, (error, written) => {
        if (error === null && at + written < bytes.length) return from(at + written);
        isTorn = error !== null && (isTorn || at > 0);
        done(error);
      });
    from(0);
  };
}

function isFile(handle: number): boolean {
  const kind = fs.fstatSync(handle);
  return !kind.isFIFO() && !kind.isSocket();
}

/** No later write can succeed. */
function isWithoutReader(error: Error): boolean {
  const code = 'code' in error ? error.code : undefined;
  return code === 'EPIPE' || code === 'ECONNRESET' || code === 'ERR_STREAM_DESTROYED';
}

/** The lines of the last 50 ms of a process, if they can be written at once. */
function writeRest(writer: LineWriter): void {
  const rest = writer.takeRest();
  if (rest === null) return;
  try {
    fs.writeSync(1, rest);
  } catch {
    // No reader.
  }
}
