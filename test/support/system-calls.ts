import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** One system call of a trace by `strace -f`: where in the trace it began and where it had ended. */
export interface SystemCall {
  readonly name: string;
  /** As strace shows them. */
  readonly args: string;
  /** As strace shows it: a number, -1 with the error's name, or ? if it never ended. */
  readonly result: string;
  readonly beganAt: number;
  readonly endedAt: number;
}

/** Why nothing can be traced here; null if it can. */
export function whyNoStrace(): string | null {
  const tried = spawnSync('strace', ['-o', '/dev/null', 'true'], { encoding: 'utf8' });
  if (tried.error !== undefined) return 'strace is not installed';
  return tried.status === 0 ? null : `strace is not allowed here: ${tried.stderr.trim()}`;
}

const WHOLE = /^(\d+) +(\w+)\((.*)\) += +(.*)$/;
const BEGUN = /^(\d+) +(\w+)\((.*?) *<unfinished \.\.\.>$/;
const RESUMED = /^(\d+) +<\.\.\. (\w+) resumed>(.*)\) += +(.*)$/;

/** The calls of a trace written by `strace -f -o FILE`, in the order in which they ended. */
export function readTrace(path: string): SystemCall[] {
  const calls: SystemCall[] = [];
  const begun = new Map<string, { args: string; beganAt: number }>();
  for (const [at, line] of readFileSync(path, 'utf8').split('\n').entries()) {
    const resumed = RESUMED.exec(line);
    if (resumed !== null) {
      const [, pid = '', name = '', rest = '', result = ''] = resumed;
      const start = begun.get(`${pid} ${name}`) ?? { args: '', beganAt: at };
      calls.push({ name, args: start.args + rest, result, beganAt: start.beganAt, endedAt: at });
      continue;
    }
    const unfinished = BEGUN.exec(line);
    if (unfinished !== null) {
      const [, pid = '', name = '', args = ''] = unfinished;
      begun.set(`${pid} ${name}`, { args, beganAt: at });
      continue;
    }
    const whole = WHOLE.exec(line);
    if (whole !== null) {
      const [, , name = '', args = '', result = ''] = whole;
      calls.push({ name, args, result, beganAt: at, endedAt: at });
    }
  }
  return calls;
}
