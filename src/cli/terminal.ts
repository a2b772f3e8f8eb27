import { readFile } from 'node:fs/promises';

/** What commands see of the process they run in. */
export interface Terminal {
  readonly env: { readonly [name: string]: string | undefined };
  /** Milliseconds since 1970. */
  now(): number;
  /** Writes to stdout; resolves when it took the text, so that a slow reader of a pipe slows the writer down. */
  print(text: string): Promise<void>;
  /** Writes to stderr. */
  tell(text: string): void;
  /** Someone watches stderr: progress may be shown there. */
  readonly isWatched: boolean;
  readStdin(): Promise<Buffer>;
  /** What the process ends with; 0 if never called. */
  exitWith(code: number): void;
}

/** A mistake of the user or of what was given: shown as one sentence, exit code 1. */
export class CliError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CliError';
  }
}

/** A file's bytes, or those of stdin for `-`. */
export async function readInput(terminal: Terminal, path: string): Promise<Buffer> {
  if (path === '-') return terminal.readStdin();
  try {
    return await readFile(path);
  } catch (error) {
    throw new CliError(`${path} cannot be read: ${reasonOf(error)}.`);
  }
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
    default:
      return error instanceof Error ? error.message : String(error);
  }
}
