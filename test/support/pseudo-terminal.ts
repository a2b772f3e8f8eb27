import { spawnSync } from 'node:child_process';

/** Why nothing can be run in a terminal here; null where it can. */
export const whyNoTerminal =
  spawnSync('script', ['--version']).status === 0 ? null : 'script of util-linux is not installed';

/** Runs a command in a terminal of its own, its stdout put aside; answers its exit code and what it showed there. */
export function inTerminal(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): { readonly status: number | null; readonly shown: string } {
  const command = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  const { status, stdout } = spawnSync('script', ['-qec', `${command} >/dev/null`, '/dev/null'], {
    encoding: 'utf8',
    env: { ...process.env, ...env, TERM: 'xterm' },
  });
  return { status, shown: stdout };
}
