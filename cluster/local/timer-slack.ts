const script = 'echo "$0" 2>/dev/null >/proc/self/timerslack_ns; exec "$@"';

/** Exit code of the shell if the command does not exist. */
export const notFoundExitCode = 127;

/** Returns a command whose threads Linux may wake up to `slackNs` nanoseconds late (PR_SET_TIMERSLACK). */
export function withTimerSlack(slackNs: number, command: string, args: readonly string[]): [string, string[]] {
  return ['sh', ['-c', script, String(slackNs), command, ...args]];
}
