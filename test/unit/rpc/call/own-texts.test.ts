import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { parseJsonBytes } from '../../../../src/domain/json/json.ts';
import { GrantMasterDelegationRequestSchema } from '../../../../src/gen/svc/v1/delegation_pb.ts';
import { readProtobufJson } from '../../../../src/rpc/connect/decode.ts';
import { makeMatcher } from '../../../../src/rpc/endpoints/path-template.ts';
import { restRoutes } from '../../../../src/rpc/endpoints/routes.ts';
import { requestReader } from '../../../../src/rpc/rest/decode.ts';
import { heldBytes } from '../../../support/held-bytes.ts';

const mib = 1024 * 1024;

/** What `read` returns for texts that end with an id and have so many characters; the id is new each time. */
async function bytesHeldBy(chars: number, count: number, read: (id: string, padding: string) => unknown) {
  const before = await heldBytes();
  const kept = Array.from({ length: count }, () => read(randomUUID(), ' '.repeat(chars)));
  const held = (await heldBytes()) - before;
  expect(kept).toHaveLength(count);
  return held;
}

const body = (id: string, padding: string) =>
  Buffer.from(`{"master_id":"${id}","role":"OPS","delegate_actor_id":"${id}"${padding}}`);

it('a field of a REST request does not keep the body in memory that it was read from', async () => {
  const route = restRoutes().find(({ method }) => method.name === 'GrantMasterDelegation');
  if (route === undefined) throw new Error('no route');
  const read = requestReader(route);
  const held = await bytesHeldBy(mib, 24, (id, padding) => {
    const message = read({ pathParams: {}, parameters: [], body: parseJsonBytes(body(id, padding)) });
    return (message as unknown as { readonly masterId: string }).masterId;
  });
  expect(held).toBeLessThan(8 * mib);
});

it('nor does a field of a Connect request', async () => {
  const held = await bytesHeldBy(mib, 24, (id, padding) => {
    const message = readProtobufJson(GrantMasterDelegationRequestSchema, parseJsonBytes(body(id, padding)));
    return (message as unknown as { readonly masterId: string }).masterId;
  });
  expect(held).toBeLessThan(8 * mib);
});

it('a parameter of a path does not keep the URL in memory', async () => {
  const match = makeMatcher(restRoutes());
  const held = await bytesHeldBy(mib, 24, (id, padding) => {
    const found = match('GET', Buffer.from(`/v1/ledgers/${id}?x=${padding}`).toString());
    return found.kind === 'found' ? found.params.ledger_id : null;
  });
  expect(held).toBeLessThan(8 * mib);
});
