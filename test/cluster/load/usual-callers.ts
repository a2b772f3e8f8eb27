import { afterMs } from '../../../cluster/local/ports.ts';
import type { SeededRandom } from '../../simulation/random.ts';
import type { LoadCalls } from './calls.ts';
import { isCertain, type LoadHistory, noted } from './load-history.ts';
import { closedKept, type LoadWorld } from './load-world.ts';
import type { OneAddress } from './parties.ts';

interface UsualCallersParts {
  readonly calls: LoadCalls;
  readonly history: LoadHistory;
  readonly random: SeededRandom;
  readonly world: LoadWorld;
  readonly address: OneAddress;
  readonly restMaxMs: number;
}

interface UsualOutcome {
  /** The number of calls with a certain answer, by transport. */
  readonly answered: Readonly<Record<'rest' | 'grpc', number>>;
  /** The most attempts that a client made for one call. */
  readonly attemptsMost: number;
}

/** Disposing them stops them. */
export interface UsualCallers extends AsyncDisposable {
  /** Starts no new calls, and resolves when those under way have ended. */
  stop(): Promise<UsualOutcome>;
}

/**
 * Starts a caller over REST and one over gRPC, which know one address only and leave retries to the default client. A
 * call that the client gives up has failed.
 */
export function startUsualCallers(parts: UsualCallersParts): UsualCallers {
  const { calls, history, random, world, address, restMaxMs } = parts;
  const answered = { rest: 0, grpc: 0 };
  let attemptsMost = 0;
  let isRunning = true;
  const note = ({ attempts }: { readonly attempts: number }) => {
    attemptsMost = Math.max(attemptsMost, attempts);
  };
  const work = async (transport: 'rest' | 'grpc') => {
    await using client = world.supplier.through(address, transport);
    while (isRunning) {
      const ledger = random.pick(world.ledgers);
      const call = calls.append(ledger, random.pick(ledger.masters.slice(closedKept)), world.supplier);
      const begunMs = performance.now();
      const result = await noted(history, call, { id: `one address, ${transport}` }, () => call.by(client, note));
      const endedMs = performance.now();
      if (result.kind === 'written') history.acknowledgements.push({ atMs: endedMs, tookMs: endedMs - begunMs });
      if (isCertain(result)) answered[transport] += 1;
      else history.noteFailed(call.name, begunMs);
      await afterMs(random.between(0, restMaxMs));
    }
  };
  const ended = Promise.all([work('rest'), work('grpc')]);
  const stop = async () => {
    isRunning = false;
    await ended;
    return { answered, attemptsMost };
  };
  return { stop, [Symbol.asyncDispose]: async () => void (await stop()) };
}
