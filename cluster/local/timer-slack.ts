const script = 'echo "$0" 2>/dev/null >/proc/self/timerslack_ns; exec "$@"';

/** What a command ends with that is not there. */
export const notFoundExitCode = 127;

/**
 * A command and its arguments, started so that Linux may wake its threads so much later than they asked to be (PR_SET_TIMERSLACK, 50 µs by default). Elsewhere
 * it is started as it is.
 */
export function withTimerSlack(slackNs: number, command: string, args: readonly string[]): [string, string[]] {
  return ['sh', ['-c', script, String(slackNs), command, ...args]];
}
