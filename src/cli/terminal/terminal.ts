import { createReadStream } from 'node:fs';
import { limits } from '../../runtime/limits/limits.ts';
import { exitCodes } from './exit-codes.ts';

/** What commands use of the process that they run in. */
export interface Terminal {
  readonly env: { readonly [name: string]: string | undefined };
  /** Milliseconds since 1970. */
  now(): number;
  /** Writes to stdout. Resolves when stdout has accepted the text: a slow reader of a pipe slows the writer down. */
  print(text: string): Promise<void>;
  /** Writes to stderr. */
  tell(text: string): void;
  /** Colours text for stdout, if that is a terminal and NO_COLOR is not set. */
  colored(color: 'green' | 'yellow' | 'red', text: string): string;
  /** Whether stderr is a terminal. */
  readonly isWatched: boolean;
  stdin(): AsyncIterable<Buffer>;
  /** Sets the exit code of the process, else 0. */
  exitWith(code: number): void;
}

/** An error of the user or of the input. It is shown as one sentence, and the process ends with its exit code. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = exitCodes.failed) {
    super(message);
    this.name = 'CliError';
    this.exitCode = exitCode;
  }
}

export function usageError(message: string): CliError {
  return new CliError(message, exitCodes.usage);
}

export function inputError(message: string): CliError {
  return new CliError(message, exitCodes.input);
}

/** Of a file that a command writes. */
export function outputError(path: string, error: unknown): CliError {
  return new CliError(`${path} cannot be written: ${reasonOf(error)}.`, exitCodes.writeFailed);
}

export function nameOf(path: string): string {
  return path === '-' ? 'stdin' : path;
}

const MEBIBYTE = 1024 * 1024;

/** How large an input may be that is read as a whole. */
export interface InputBound {
  readonly maxBytes: number;
  /** What to do with a larger one, as the end of a sentence. */
  readonly advice: string;
}

/** For keys, secrets, certificates, notes and JSON. What is sent may not be larger than a request's body. */
const smallInput: InputBound = {
  maxBytes: limits.requestBodyMaxBytes,
  advice: 'check that it is the right one',
};

/** The bytes of a file, or of stdin for `-`. Throws CliError (exit code 66), also if there are too many. */
export async function readInput(terminal: Terminal, path: string, bound: InputBound = smallInput): Promise<Buffer> {
  const { maxBytes, advice } = bound;
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of path === '-' ? terminal.stdin() : createReadStream(path)) {
      pieces.push(piece);
      length += piece.length;
      if (length > maxBytes) break;
    }
  } catch (error) {
    throw inputError(`${nameOf(path)} cannot be read: ${reasonOf(error)}.`);
  }
  if (length > maxBytes) throw inputError(`${nameOf(path)} is larger than ${maxBytes / MEBIBYTE} MiB: ${advice}.`);
  return Buffer.concat(pieces);
}

/** Why the file system refused, in words. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
      return 'it is not there';
    case 'EACCES':
    case 'EPERM':
      return 'you may not';
    case 'EISDIR':
      return 'it is a directory';
    case 'EEXIST':
      return 'it exists already';
    case 'ENOSPC':
      return 'the disk is full';
    default:
      return error instanceof Error ? error.message : String(error);
  }
}
