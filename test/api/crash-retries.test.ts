import { expect, test } from 'vitest';
import { Auth } from '../../src/gen/svc/v1/options_pb.ts';
import { type RestRoute, restRoutes } from '../../src/rpc/endpoints/routes.ts';
import { crashCalls } from '../support/crash-calls.ts';
import { type CrashedCall, crashAmong, expectOnce, madeBy } from '../support/crash-retries.ts';
import { newCrashScene } from '../support/crash-scene.ts';
import { isNightly } from '../support/nightly.ts';
import { suiteProcesses } from '../support/node-for-tests.ts';
import { suiteDir } from '../support/running-node.ts';

const dataDir = suiteDir();
const startProcess = suiteProcesses();
const start = () => startProcess({ DATA_DIR: dataDir });

const nameOf = ({ httpMethod, template }: RestRoute) => `${httpMethod} ${template}`;

/** All that take an idempotency key. */
const keyed = restRoutes().filter(
  ({ httpMethod, rule }) => ['POST', 'PATCH', 'DELETE'].includes(httpMethod) && rule.auth !== Auth.NONE,
);

test('this test covers every POST, PATCH and DELETE with a credential', () => {
  expect(Object.keys(crashCalls).toSorted()).toEqual(keyed.map(nameOf).toSorted());
});

/** Those that claim their key before they begin; the others write it together with their event. */
const claiming = keyed.filter(({ rule }) => !rule.writesLedger).map(nameOf);

/** What no crash has hit yet. In the ordinary run any of the calls that claim their key stands for all of them. */
function missed(crashed: readonly CrashedCall[], carriedOut: number): string[] {
  const hit = new Set(crashed.filter(({ isHit }) => isHit).map(({ route }) => route));
  const unclaimed = claiming.filter((route) => !hit.has(route));
  return [
    ...(isNightly || unclaimed.length === claiming.length ? unclaimed : []),
    ...([...hit].every((route) => claiming.includes(route)) ? ['a written event without an answer'] : []),
    ...(carriedOut === 0 ? ['a claim whose call was carried out'] : []),
  ];
}

/** At which answers the node is killed, one round after the other, until nothing is missed. */
const rounds = [1, 3, 12, 1, 3, 6, 12, 1, 3, 6, 12, 1, 3];
const roundsMin = isNightly ? 3 : 1;

test('a retry after a crash creates nothing twice and returns the same ids and secrets', {
  timeout: 240_000,
}, async () => {
  let node = await start();
  const crashed: CrashedCall[] = [];
  let carriedOut = 0;
  for (const [round, atAnswer] of rounds.entries()) {
    if (round >= roundsMin && missed(crashed, carriedOut).length === 0) break;
    const { base, kill } = node;
    const calls = await crashAmong(await newCrashScene(base), {
      base,
      atAnswer,
      crash: async () => {
        await kill();
        node = await start();
        return node.base;
      },
    });
    crashed.push(...calls);
    const running = calls.filter(({ second }) => second?.code === 'idempotency_in_progress');
    carriedOut += (await madeBy(node.base, running)).filter(({ length }) => length > 0).length;
  }
  // Otherwise nothing was shown.
  expect(missed(crashed, carriedOut)).toEqual([]);
  // All rounds at once: a claim is held until the deadline of its dead call.
  await expectOnce(crashed, { again: node.base, onceMore: node.base });
});
