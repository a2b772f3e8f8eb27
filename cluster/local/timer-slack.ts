const script = 'echo "$0" 2>/dev/null >/proc/self/timerslack_ns; exec "$@"';

/** Exit code of the shell if the command does not exist. */
export const notFoundExitCode = 127;

/**
 * Wraps a command, so that Linux may wake its threads up to `slackNs` nanoseconds late (PR_SET_TIMERSLACK; the default
 * is 50 µs). On other systems the command runs without it. Returns the new command and its arguments.
 */
export function withTimerSlack(slackNs: number, command: string, args: readonly string[]): [string, string[]] {
  return ['sh', ['-c', script, String(slackNs), command, ...args]];
}
