import { expect, test } from 'vitest';
import { newParty, type Party } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { type RunningTestNode, runNode, suiteDir } from '../support/running-node.ts';
import { eventually, receiveWebhooks } from '../support/webhook-receiver.ts';

const dataDir = suiteDir();
/** All nodes of a store have one. */
const LOG_ORIGIN = 'ledger.example/v1';

/** A subscription that was allowed when it was created, on a node in development mode that has stopped. */
async function storedSubscription(url: string): Promise<{ by: Party; id: string }> {
  await using node = await runNode({ dataDir, env: { LOG_ORIGIN } });
  const by = await newParty(node.base);
  const made = await done(node.base, 'POST', '/v1/webhooks', { headers: by.bearer, body: { url } });
  return { by, id: made.text('id') };
}

/** The result of an attempt at a test delivery. */
async function attempted(node: RunningTestNode, by: Party, id: string) {
  await done(node.base, 'POST', `/v1/webhooks/${id}/test`, { headers: by.bearer });
  const look = async () => {
    const listed = await done(node.base, 'GET', `/v1/webhooks/${id}/deliveries`, { headers: by.bearer });
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
  await using receiver = await receiveWebhooks();
  const { by, id } = await storedSubscription(receiver.url);
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

test('a node in development mode delivers to the same target', async () => {
  await using receiver = await receiveWebhooks();
  const { by, id } = await storedSubscription(receiver.url);
  await using node = await runNode({ dataDir });
  expect(await attempted(node, by, id)).toMatchObject({ status: 'DELIVERED', last_response_status: 200 });
  expect(receiver.connections()).toBe(1);
});

test.each(['PORT', 'GRPC_PORT', 'OPS_PORT'])(
  'a stored target that is now the %s of the node is not connected to',
  async (own) => {
    const receiver = await receiveWebhooks();
    const { by, id } = await storedSubscription(receiver.url);
    await receiver[Symbol.asyncDispose]();
    await using node = await runNode({ dataDir, env: { [own]: new URL(receiver.url).port } });
    expect(await attempted(node, by, id)).toMatchObject(refused);
  },
);

test('a stored target on a closed port is not connected to', async () => {
  await using receiver = await receiveWebhooks();
  const { by, id } = await storedSubscription(receiver.url);
  await using node = await runNode({ dataDir, env: { WEBHOOK_CLOSED_PORTS: new URL(receiver.url).port } });
  expect(await attempted(node, by, id)).toMatchObject(refused);
  expect(receiver.connections()).toBe(0);
});
