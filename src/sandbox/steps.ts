import { LedgerTrustError } from '../client/error.ts';

/** What a step found to be wrong. */
class StepFailed extends Error {}

/** Throws StepFailed unless the condition holds. */
export function check(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new StepFailed(otherwise);
}

/** Expects the service to refuse with one of these codes. */
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
 * One line of the story: what is done, and doing it. It may answer with what it saw, which is told behind it. A step that waits, or
 * makes many calls, ends with the signal.
 */
export interface Step {
  readonly title: string;
  run(signal: AbortSignal): Promise<string | undefined>;
}

/**
 * Tells the steps as they happen, a line each; a step that fails ends the story. The last line counts. With the signal nobody
 * listens any more, and the story ends behind the step that is under way.
 */
export async function* tell(steps: AsyncIterable<Step> | Iterable<Step>, signal: AbortSignal): AsyncIterable<string> {
  let passed = 0;
  for await (const step of steps) {
    if (signal.aborted) return;
    try {
      const seen = await step.run(signal);
      passed += 1;
      yield `✓ ${step.title}${seen === undefined ? '' : `: ${seen}`}`;
    } catch (error) {
      yield `✗ ${step.title}: ${reason(error)}`;
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
