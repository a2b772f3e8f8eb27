import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newParty, type Party } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { type RunningTestNode, runNode, suiteDir } from '../support/running-node.ts';
import { eventually, receiveWebhooks, type WebhookReceiver } from '../support/webhook-receiver.ts';

const dataDir = suiteDir();
/** All nodes of a store have one. */
const LOG_ORIGIN = 'ledger.example/v1';

interface Stored {
  readonly receiver: WebhookReceiver;
  readonly by: Party;
  readonly id: string;
}

/** Subscriptions that were allowed when they were created, on a node in development mode that has stopped. */
const stored: Stored[] = [];
beforeAll(async () => {
  await using node = await runNode({ dataDir, env: { LOG_ORIGIN } });
  for (let n = 0; n < 6; n += 1) {
    const receiver = await receiveWebhooks();
    const by = await newParty(node.base);
    const made = await done(node.base, 'POST', '/v1/webhooks', by, { url: receiver.url });
    stored.push({ receiver, by, id: made.text('id') });
  }
});
afterAll(() => Promise.all(stored.map(({ receiver }) => receiver[Symbol.asyncDispose]())));

function storedAt(at: number): Stored {
  return stored[at] ?? expect.fail('no subscription');
}

/** The result of an attempt at a test delivery. */
async function attempted(node: RunningTestNode, by: Party, id: string) {
  await done(node.base, 'POST', `/v1/webhooks/${id}/test`, by);
  const look = async () => {
    const listed = await done(node.base, 'GET', `/v1/webhooks/${id}/deliveries`, by);
    return listed.rows('deliveries')[0];
  };
  return eventually(look, (delivery) => delivery?.status === 'DELIVERED' || typeof delivery?.last_error === 'string');
}

const refused = {
  status: 'PENDING',
  last_response_status: null,
  last_error: 'The receiver stands at an address that webhooks may not go to.',
};

test('a node in production mode does not connect to a stored target on loopback', async () => {
  const { receiver, by, id } = storedAt(0);
  await using production = await runNode({
    dataDir,
    env: {
      SVC_MODE: 'production',
      TLS_TERMINATED: '1',
      AUTHORITY_KEY_FILE: `${dataDir}/authority.pem`,
      SECRETS_KEY_FILE: `${dataDir}/secrets.key`,
      LOG_ORIGIN,
      LOG_KEY_FILE: `${dataDir}/log.pem`,
    },
  });
  expect(await attempted(production, by, id)).toMatchObject(refused);
  expect(receiver.connections()).toBe(0);
});

describe('a node in development mode', () => {
  const ownPorts = ['PORT', 'GRPC_PORT', 'OPS_PORT'];
  let node: RunningTestNode;
  beforeAll(async () => {
    const portAt = (at: number) => new URL(storedAt(at).receiver.url).port;
    const env: Record<string, string> = { WEBHOOK_CLOSED_PORTS: portAt(2) };
    for (const [at, own] of ownPorts.entries()) {
      env[own] = portAt(3 + at);
      await storedAt(3 + at).receiver[Symbol.asyncDispose]();
    }
    node = await runNode({ dataDir, env });
  });
  afterAll(() => node[Symbol.asyncDispose]());

  test('delivers to a stored target on loopback', async () => {
    const { receiver, by, id } = storedAt(1);
    expect(await attempted(node, by, id)).toMatchObject({ status: 'DELIVERED', last_response_status: 200 });
    expect(receiver.connections()).toBe(1);
  });

  test('does not connect to a stored target on a closed port', async () => {
    const { receiver, by, id } = storedAt(2);
    expect(await attempted(node, by, id)).toMatchObject(refused);
    expect(receiver.connections()).toBe(0);
  });

  test.each([...ownPorts.entries()])(
    'does not connect to a stored target that is now its own port (%i, %s)',
    async (at) => {
      const { by, id } = storedAt(3 + at);
      expect(await attempted(node, by, id)).toMatchObject(refused);
    },
  );
});
