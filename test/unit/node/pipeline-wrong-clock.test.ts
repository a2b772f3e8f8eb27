import { beforeEach, expect, test } from 'vitest';
import { bareEntityId, bearer, listeningNodeForTests, masterId, otherActorId } from '../../support/listening-node.ts';

let called = 0;
const nodeClock = { isRight: true };
const note = async () => {
  called += 1;
  return {};
};

const node = await listeningNodeForTests({
  grpc: false,
  isClockRight: () => nodeClock.isRight,
  handlers: {
    'ActorService.CreateActor': note,
    'DeveloperService.GetDeveloper': note,
    'MasterService.ListMasters': note,
    'MasterService.AppendEvent': note,
    'EngagementService.CreateEngagement': note,
    'HealthService.GetHealth': note,
  },
});
beforeEach(() => {
  called = 0;
  nodeClock.isRight = false;
});

async function ask(method: string, path: string, headers: Record<string, string>, body?: object): Promise<string> {
  const response = await fetch(node.base + path, {
    method,
    headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as { error?: { code: string; message: string } };
  return answer.error === undefined ? 'ok' : `${answer.error.code}: ${answer.error.message}`;
}

const entity = { 'x-actor-id': bareEntityId, 'x-actor-type': 'device' };
const engagement = { counterparty_actor_id: otherActorId, purpose: 'P' };
const signedNow = () => ({ ...entity, 'x-actor-sig': 'good-signature', 'x-timestamp': new Date().toISOString() });
const event = { event_type: 'note', payload: { a: 1 } };
const refused = expect.stringMatching(/^unavailable: The clock of this node is off.*retry/);

test('a node whose clock is off reads nothing for callers with a credential, whose grants may have ended', async () => {
  expect(await ask('GET', '/v1/traceledger/master?ledger_id=x', bearer)).toEqual(refused);
  expect(await ask('GET', '/v1/developer/me', bearer)).toEqual(refused);
  expect(called).toBe(0);
  nodeClock.isRight = true;
  expect(await ask('GET', '/v1/traceledger/master?ledger_id=x', bearer)).toBe('ok');
});

test('a node whose clock is off takes no signed request, whose age it cannot tell', async () => {
  expect(await ask('POST', '/v1/engagements', signedNow(), engagement)).toEqual(refused);
  expect(called).toBe(0);
});

test('a node whose clock is off passes commands to ledgers on, and goes on to tell its health', async () => {
  expect(await ask('POST', `/v1/traceledger/master/${masterId}/events`, bearer, event)).toBe('ok');
  expect(await ask('GET', '/v1/health', {})).toBe('ok');
  expect(called).toBe(2);
});
