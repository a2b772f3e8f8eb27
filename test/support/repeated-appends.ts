import { expect } from 'vitest';
import { sleep } from '../../src/runtime/clock/clock.ts';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import { append, type Master, type Party } from './parties.ts';

const restMs = 50;
/** After these an append may be sent again under its key. */
const retryable: ReadonlySet<string | null> = new Set([
  'unavailable',
  'overloaded',
  'outcome_unknown',
  'idempotency_in_progress',
]);

interface RepeatedAppends {
  readonly masters: readonly Master[];
  readonly by: Party;
  /** Begins the keys. */
  readonly name: string;
  /** How many are under way at once. */
  readonly lanes: number;
  /** Whether the nth append is to be made. */
  isWanted(n: number): boolean;
  /** Where a lane sends its next attempt. */
  baseOf(lane: number, attempt: number): string;
  onAnswer?(answered: number): void;
}

/** Appends events until no more are wanted. Each is sent again under its key until it is answered. How many. */
export async function appendRepeatedly(options: RepeatedAppends): Promise<number> {
  const { masters, by, name, lanes } = options;
  let made = 0;
  let answered = 0;
  await Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      while (options.isWanted(made)) {
        const n = made++;
        const master = masters[n % masters.length];
        if (master === undefined) throw new Error('no master');
        await untilAnswered(options, lane, (base) =>
          append({ ...master, base }, by, 'NOTED', { n }, { headers: { 'idempotency-key': `${name}-${n}` } }),
        );
        answered += 1;
        options.onAnswer?.(answered);
      }
    }),
  );
  return answered;
}

async function untilAnswered(
  { baseOf }: RepeatedAppends,
  lane: number,
  send: (base: string) => ReturnType<typeof append>,
): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await send(baseOf(lane, attempt)).catch((error: unknown) => {
      if (error instanceof TypeError) return null;
      throw error;
    });
    if (answer?.status === 200) return;
    if (answer !== null) expect(retryable, answer.raw).toContain(answer.code);
    await sleep(systemClock, restMs);
  }
}
