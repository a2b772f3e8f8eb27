import { LedgerTrustError } from '../client/error.ts';

class StepFailed extends Error {}

export function check(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new StepFailed(otherwise);
}

/** Expects the service to refuse the call with one of these codes. Throws StepFailed, or the error of the call. */
export async function refused(call: Promise<unknown>, ...codes: string[]): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (error instanceof LedgerTrustError && codes.includes(error.code)) return;
    throw error;
  }
  throw new StepFailed(`the service accepted what it should have refused with ${codes.join(' or ')}`);
}

/** A line of the story. A text that `run` resolves with is shown after the title. Long steps stop with the signal. */
export interface Step {
  readonly title: string;
  run(signal: AbortSignal): Promise<unknown>;
}

export function step(title: string, run: Step['run']): Step {
  return { title, run };
}

/** Yields a line for each step, then the counts. Ends behind a step that fails, or in which the signal aborts. */
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
