import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const CHILD = fileURLToPath(new URL('./store-lmdb-child.ts', import.meta.url));

/** A running store-lmdb-child.ts. */
export interface StoreChild extends AsyncDisposable {
  /** All lines so far. */
  readonly lines: readonly string[];
  /** When so many lines start like this, of those that came and those to come. */
  line(start: string, count?: number): Promise<void>;
  /** When it has ended by itself. */
  ended(): Promise<void>;
  /** SIGKILL, and wait until it is gone and its last lines were read. */
  kill(): Promise<void>;
}

/** Starts the child; `under` is a command to run it with, such as strace and its options. */
export function startChild(args: readonly string[], under: readonly string[] = []): StoreChild {
  const [command = '', ...rest] = [...under, process.execPath, CHILD, ...args];
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  let errors = '';
  let isOver = false;
  const wake = () => {
    for (const check of waiting) check();
  };
  child.stderr.on('data', (data: Buffer) => {
    errors += data.toString();
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    wake();
  });
  const over = new Promise<void>((resolve) => {
    child.once('close', () => {
      isOver = true;
      resolve();
      wake();
    });
  });
  const kill = async () => {
    if (!isOver) killGroup(child);
    await over;
  };
  return {
    lines,
    ended: () => over,
    kill,
    [Symbol.asyncDispose]: kill,
    line: (start, count = 1) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const found = lines.filter((line) => line.startsWith(start)).length >= count;
          if (!found && !isOver) return;
          waiting.delete(check);
          if (found) resolve();
          else reject(new Error(`The child ended without "${start}": ${errors}`));
        };
        waiting.add(check);
        check();
      }),
  };
}

/** A tracer does not pass SIGKILL on, so the child and its tracer are a process group of their own. */
function killGroup(child: ChildProcess): void {
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
}

/** The batches that the child was told are durable: the highest number and how many, by ledger. */
export function acknowledged(lines: readonly string[]): Map<string, number> {
  const next = new Map<string, number>();
  for (const line of lines) {
    const [word = '', ledgerId = '', batch = ''] = line.split(' ');
    if (word === 'ack') next.set(ledgerId, Math.max(next.get(ledgerId) ?? 0, Number(batch) + 1));
  }
  return next;
}
