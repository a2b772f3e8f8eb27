import { LedgerTrustError } from '../client/error.ts';

/** A step found something wrong. Its message goes into the story. */
class StepFailed extends Error {}

/** Throws StepFailed unless the condition holds. */
export function check(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new StepFailed(otherwise);
}

/**
 * Expects the service to refuse the call with one of these codes. Throws StepFailed if the call succeeds, and its error
 * if it fails otherwise.
 */
export async function refused(call: Promise<unknown>, ...codes: string[]): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (error instanceof LedgerTrustError && codes.includes(error.code)) return;
    throw error;
  }
  throw new StepFailed(`the service accepted what it should have refused with ${codes.join(' or ')}`);
}

/**
 * One line of the story: a title and the work. `run` may resolve with a text that is shown after the title. A step
 * that waits or makes many calls stops when the signal aborts.
 */
export interface Step {
  readonly title: string;
  run(signal: AbortSignal): Promise<unknown>;
}

export function step(title: string, run: Step['run']): Step {
  return { title, run };
}

/**
 * Runs the steps and yields a line for each. A step that fails ends the story. The last line gives the counts. When the
 * signal aborts, the caller has left: the story ends after the running step.
 */
export async function* tell(steps: AsyncIterable<Step> | Iterable<Step>, signal: AbortSignal): AsyncIterable<string> {
  let passed = 0;
  for await (const { title, run } of steps) {
    if (signal.aborted) return;
    try {
      const seen = await run(signal);
      passed += 1;
      yield `✓ ${title}${typeof seen === 'string' ? `: ${seen}` : ''}`;
    } catch (error) {
      yield `✗ ${title}: ${reason(error)}`;
      yield `${passed} passed, 1 failed`;
      return;
    }
  }
  yield `${passed} passed, 0 failed`;
}

function reason(error: unknown): string {
  if (error instanceof LedgerTrustError) return `${error.code}: ${error.message}`;
  if (error instanceof StepFailed) return error.message;
  return error instanceof Error ? error.message : String(error);
}
