import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { expect, onTestFinished, test, vi } from 'vitest';
import { newParty } from '../support/parties.ts';
import { expectRefused, rest } from '../support/parties-rest.ts';
import { runNode } from '../support/running-node.ts';

/** A machine with a public address. */
const publicAddress = '8.8.8.8';
const addresses = [{ address: '127.0.0.1' }, { address: publicAddress }] as os.NetworkInterfaceInfo[];

test('a subscription to a port of the node at a public address of its machine is refused', async () => {
  const machine = vi.spyOn(os, 'networkInterfaces').mockReturnValue({ eth0: addresses });
  syncBuiltinESMExports();
  onTestFinished(() => {
    machine.mockRestore();
    syncBuiltinESMExports();
  });
  await using node = await runNode({ env: {} });
  const { bearer: headers } = await newParty(node.base);
  const subscribe = (address: string, port: string) =>
    rest(node.base, 'POST', '/v1/webhooks', { headers, body: { url: `https://${address}:${port}/` } });
  for (const own of [node.base, node.opsBase, `http://${node.grpcAddress}`]) {
    const { port } = new URL(own);
    expectRefused(await subscribe(publicAddress, port), 400, 'invalid_argument');
    expect((await subscribe('8.8.4.4', port)).status).toBe(200);
  }
});
