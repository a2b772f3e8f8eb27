import { expect } from 'vitest';
import { type CrashCall, crashCalls } from './crash-calls.ts';
import type { CrashScene } from './crash-scene.ts';
import { bearerOf } from './parties.ts';
import { done, type Fields, type RestAnswer, rest } from './parties-rest.ts';

/** Where calls go while something crashes. */
interface Crash {
  /** Its address before the crash. */
  readonly base: string;
  /** The crash comes at this answer, so that some calls are answered and others under way. */
  readonly atAnswer: number;
  /** Crashes the service, and returns the address for the retries. */
  crash(): Promise<string>;
}

/** A call that was sent before a crash and again after it. */
export interface CrashedCall extends CrashCall {
  readonly route: string;
  readonly key: string;
  /** null: the crash came before its answer. */
  readonly first: RestAnswer | null;
  /** The newest answer after the crash. */
  readonly second: RestAnswer | null;
  /** Without an answer before the crash, and carried out by then, or begun. */
  readonly isHit: boolean;
}

/** Whether a call is to be sent again after this answer. */
type AsksAgain = (answer: RestAnswer) => boolean;

const isInProgress: AsksAgain = ({ code }) => code === 'idempotency_in_progress';

/** Sends all calls at once, with a crash meanwhile, and each of them once more after it. */
export async function crashAmong(scene: CrashScene, { base, atAnswer, crash }: Crash): Promise<CrashedCall[]> {
  const calls = Object.entries(crashCalls).map(([route, callIn]) => ({
    ...callIn(scene),
    route,
    key: `crash ${route}`,
  }));
  await expectMade(base, calls, 0);
  let answered = 0;
  let crashed: Promise<string> | null = null;
  const firsts = await Promise.all(
    calls.map(async (call) => {
      const answer = await attempt(base, call);
      answered += 1;
      if (answered >= atAnswer) crashed ??= crash();
      return answer;
    }),
  );
  const again = await (crashed ?? crash());
  return Promise.all(
    calls.map((call, at) => sentAgain(again, { ...call, first: firsts[at] ?? null, second: null, isHit: false })),
  );
}

/**
 * Expects that the retries of calls that a crash came among are answered as they would have been without it, that each
 * call has been carried out once, and that once more it gets the same answer. `asksAgain`: if not given, while the
 * first attempt holds the key alone.
 */
export async function expectOnce(
  crashed: readonly CrashedCall[],
  at: { readonly again: string; readonly onceMore: string },
  asksAgain: AsksAgain = isInProgress,
): Promise<CrashedCall[]> {
  const calls = await Promise.all(crashed.map((call) => retried(at.again, call, asksAgain)));
  for (const { route, first, second } of calls) {
    expect([route, second?.raw, Number(second?.status) < 300]).toEqual([route, second?.raw, true]);
    if (first !== null && !asksAgain(first))
      expect([route, first.status, first.raw]).toEqual([route, second?.status, second?.raw]);
  }
  const made = await expectMade(at.again, calls, 1);
  for (const [n, { route, id, second }] of calls.entries())
    if (id !== undefined)
      expect([route, JSON.stringify(made[n])]).toEqual([route, expect.stringContaining(second?.text(id) ?? '')]);
  for (const { second } of calls.filter(({ second }) => second?.body.api_key !== undefined))
    await done(at.onceMore, 'GET', '/v1/developer/me', { headers: bearerOf(second?.text('api_key') ?? '') });
  const thirds = await Promise.all(calls.map((call) => retried(at.onceMore, { ...call, second: null }, asksAgain)));
  for (const [n, { route, second }] of thirds.entries())
    expect([route, second?.headers.get('idempotent-replayed'), second?.raw]).toEqual([
      route,
      'true',
      calls[n]?.second?.raw,
    ]);
  await expectMade(at.onceMore, calls, 1);
  return calls;
}

type Sent = CrashCall & Pick<CrashedCall, 'route' | 'key'>;

export function madeBy(base: string, calls: readonly Sent[]): Promise<(readonly Fields[])[]> {
  return Promise.all(calls.map(({ made }) => made(base)));
}

/** Expects that what each call makes is there so often. */
async function expectMade(base: string, calls: readonly Sent[], times: number): Promise<(readonly Fields[])[]> {
  const made = await madeBy(base, calls);
  expect(calls.map(({ route }, n) => [route, made[n]?.length])).toEqual(calls.map(({ route }) => [route, times]));
  return made;
}

async function attempt(base: string, { route, key, ids = [], headers, body }: Sent): Promise<RestAnswer | null> {
  const [method = '', template = ''] = route.split(' ');
  const left = ids.values();
  const path = template.replaceAll(/\{\w+\}/g, () => left.next().value ?? '');
  try {
    return await rest(base, method, path, { headers: { ...headers, 'idempotency-key': key }, body });
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

async function sentAgain(base: string, call: CrashedCall): Promise<CrashedCall> {
  const second = await attempt(base, call);
  const isReplayed = second?.headers.get('idempotent-replayed') === 'true';
  const hasBegun = second !== null && (isInProgress(second) || isReplayed);
  return { ...call, second, isHit: call.isHit || (call.first === null && hasBegun) };
}

/** Until there is an answer: a first run that died holds its key until its deadline. */
async function retried(base: string, call: CrashedCall, asksAgain: AsksAgain): Promise<CrashedCall> {
  for (const end = Date.now() + 25_000; ; ) {
    if (call.second !== null && !asksAgain(call.second)) return call;
    if (Date.now() > end) throw new Error(`${call.route}: ${call.second?.raw}`);
    call = await sentAgain(base, call);
    if (call.second === null || asksAgain(call.second)) await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
