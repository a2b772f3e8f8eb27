import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import type { CommandKey } from '../../../../src/domain/event/event.ts';
import { DeveloperService } from '../../../../src/gen/svc/v1/developer_pb.ts';
import { MasterService } from '../../../../src/gen/svc/v1/masters_pb.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { commandId } from '../../../../src/service/idempotency/command-key.ts';
import type { RecordStore } from '../../../../src/store/record-store.ts';
import { callGrpc, grpcClient } from '../../../support/grpc-client.ts';
import {
  actorId,
  bearer,
  goodKey,
  type ListeningNode,
  masterId,
  otherActorId,
  otherKey,
  startListeningNode,
} from '../../../support/listening-node.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';
import { faultyRecordStore, type StoreFault, scriptedFaults } from '../../../support/store-faults.ts';

let nodes: ListeningNode[] = [];
afterEach(async () => {
  for (const node of nodes) await node[Symbol.asyncDispose]();
  nodes = [];
});

type Handler = (request: never, call: Call) => Promise<object>;
async function start(
  createApiKey: Handler,
  more: { now?: () => number; append?: Handler; records?: RecordStore; secretsKey?: Buffer; grpc?: boolean } = {},
): Promise<ListeningNode> {
  const node = await startListeningNode({
    handlers: {
      'DeveloperService.CreateApiKey': createApiKey,
      'MasterService.AppendEvent': more.append ?? createApiKey,
    },
    grpc: false,
    ...more,
  });
  nodes.push(node);
  return node;
}

/** Ids and secrets as a real handler makes them. */
const made: Handler = async (request: { name: string }, call) => ({
  keyId: call.newId(),
  apiKey: call.randomBytes(40).toString('hex'),
  environment: 'sandbox',
  name: request.name,
});

/** A handler that counts its runs. `before` is called first, with the number of the run. */
function counted(before: (run: number) => Promise<void> | void = () => {}) {
  let runs = 0;
  const handler: Handler = async (request, call) => {
    runs += 1;
    await before(runs);
    return made(request, call);
  };
  return { handler, runs: () => runs };
}

/** Fails the first run alone. */
const failingOnce = (error: LedgerError) =>
  counted((run) => {
    if (run === 1) throw error;
  });

function post(node: ListeningNode, path: string, key: string | null, body: string, apiKey = goodKey) {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const keyed = key === null ? headers : { ...headers, 'idempotency-key': key };
  return fetch(`${node.base}${path}`, { method: 'POST', headers: keyed, body });
}

async function create(
  node: ListeningNode,
  key: string | null,
  { name = 'n', apiKey = goodKey, query = '', body = JSON.stringify({ name }) } = {},
) {
  const response = await post(node, `/v1/developer/keys${query}`, key, body, apiKey);
  const text = await response.text();
  const answer = JSON.parse(text) as { error?: { code: string }; key_id?: string; api_key?: string };
  const replayed = response.headers.get('idempotent-replayed');
  return { status: response.status, text, code: answer.error?.code ?? null, body: answer, replayed };
}

describe('an idempotency key', () => {
  it('gets the first answer again, byte for byte, and runs nothing twice', async () => {
    const { handler, runs } = counted();
    const node = await start(handler);
    const [first, again] = [await create(node, 'a'), await create(node, 'a')];
    expect([first.status, first.replayed, again.replayed, runs()]).toEqual([200, null, 'true', 1]);
    expect(again.text).toBe(first.text);
  });

  it('of another actor, another one, and none at all are calls of their own', async () => {
    const node = await start(made);
    const answers = [
      await create(node, 'a'),
      await create(node, 'a', { apiKey: otherKey }),
      await create(node, 'b'),
      await create(node, null),
      await create(node, null),
    ];
    expect(new Set(answers.map(({ text }) => text)).size).toBe(5);
    expect(answers.every(({ replayed }) => replayed === null)).toBe(true);
  });

  it('with another body or query is idempotency_key_reused, white space is no other body', async () => {
    const node = await start(made);
    await create(node, 'a');
    for (const other of [{ name: 'other' }, { query: '?x=1' }])
      expect((await create(node, 'a', other)).code).toBe('idempotency_key_reused');
    expect((await create(node, 'a', { body: ' { "name" : "\\u006e" } ' })).replayed).toBe('true');
  });

  it('of a call that was refused is free again, for another body too', async () => {
    const node = await start(failingOnce(new LedgerError('invalid_argument', 'Not like this.')).handler);
    expect((await create(node, 'a')).code).toBe('invalid_argument');
    expect((await create(node, 'a', { name: 'corrected' })).status).toBe(200);
  });

  it('of a call that failed half way keeps what it was for: it may have made something', async () => {
    const node = await start(failingOnce(new LedgerError('unavailable', 'Half of it is made.')).handler);
    expect((await create(node, 'a')).code).toBe('unavailable');
    expect((await create(node, 'a', { name: 'other' })).code).toBe('idempotency_key_reused');
    expect((await create(node, 'a')).status).toBe(200);
  });

  it.each<StoreFault>(['lost', 'applied'])(
    'whose claim may or may not stand (%s) is unavailable: nothing of the call was done',
    async (fault) => {
      let time = 1_800_000_000_000;
      const { handler, runs } = counted();
      const { choose, fail } = scriptedFaults();
      const records = faultyRecordStore(new MemoryRecordStore(), choose);
      const node = await start(handler, { records, now: () => time });
      fail('record-write', fault);
      expect([(await create(node, 'a')).code, runs()]).toEqual(['unavailable', 0]);
      time += 60_000;
      expect([(await create(node, 'a')).status, (await create(node, 'a')).replayed, runs()]).toEqual([200, 'true', 1]);
    },
  );

  it('a hundred times at once runs once; the others are in progress or get its answer', async () => {
    const { handler, runs } = counted(() => setTimeout(20));
    const node = await start(handler);
    const answers = await Promise.all(Array.from({ length: 100 }, () => create(node, 'a')));
    expect(runs()).toBe(1);
    expect(new Set(answers.map(({ code }) => code))).toEqual(new Set([null, 'idempotency_in_progress']));
    expect(new Set(answers.flatMap(({ body }) => body.key_id ?? [])).size).toBe(1);
  });

  it('an error answer is not stored: the next call runs again, to the ids of the first run', async () => {
    const ids: string[] = [];
    const node = await start(async (request, call) => {
      const answer = (await made(request, call)) as { keyId: string };
      ids.push(answer.keyId);
      if (ids.length === 1) throw new LedgerError('unavailable', 'Not now.');
      return answer;
    });
    expect((await create(node, 'a')).code).toBe('unavailable');
    expect((await create(node, 'a')).status).toBe(200);
    expect((await create(node, 'a')).replayed).toBe('true');
    expect(ids).toEqual([ids[0], ids[0]]);
  });

  it('an abandoned claim is in progress until its deadline, then run again on another node to the same ids, secrets and time', async () => {
    let time = 1_800_000_000_000;
    const seen: object[] = [];
    const shared = { records: new MemoryRecordStore(), secretsKey: Buffer.alloc(32, 7), now: () => time };
    const run: Handler = async (request, call) => {
      const answer = await made(request, call);
      seen.push({ ...answer, now: call.now });
      return answer;
    };
    const crashed = await start(async (request, call) => run(request, call).then(() => new Promise(() => {})), shared);
    const other = await start(run, shared);
    void create(crashed, 'a').catch(() => {});
    while (seen.length === 0) await setTimeout(5);
    expect((await create(other, 'a')).code).toBe('idempotency_in_progress');
    time += 11_500;
    expect((await create(other, 'a')).status).toBe(200);
    expect(seen).toEqual([seen[0], seen[0]]);
  });

  it('a handler that does not answer in time is answered for: the outcome is unknown', async () => {
    let time = 1_800_000_000_000;
    let running: Call | null = null;
    const never: Handler = (_request, call) => {
      running = call;
      return new Promise(() => {});
    };
    const node = await start(never, { now: () => time });
    const answer = create(node, null);
    while (running === null) await setTimeout(5);
    time += 11_500;
    expect(await answer).toMatchObject({ status: 504, code: 'outcome_unknown' });
    expect((running as Call).signal.aborted).toBe(true);
  });

  it('is forgotten after 24 hours', async () => {
    let time = 1_800_000_000_000;
    const node = await start(made, { now: () => time });
    const first = await create(node, 'a');
    time += 24 * 3600_000 - 1;
    expect((await create(node, 'a')).text).toBe(first.text);
    time += 2;
    const later = await create(node, 'a');
    expect([later.status, later.replayed, later.text === first.text]).toEqual([200, null, false]);
  });

  it('neither secret nor seed stands readable in the record', async () => {
    const node = await start(made);
    const { body } = await create(node, 'a');
    const record = await node.records.get('idempotency', commandId(actorId, 'a'));
    expect(record?.value).toContain('"done"');
    const sealed = (JSON.parse(record?.value ?? '{}') as { sealed: string }).sealed;
    expect(Buffer.from(sealed, 'base64').includes(body.api_key ?? '?')).toBe(false);
    expect(record?.value).not.toContain(body.api_key);
  });

  it('a replay still needs a valid credential', async () => {
    const node = await start(made);
    await create(node, 'a');
    node.credentials.revoked.add(goodKey);
    expect((await create(node, 'a')).code).toBe('invalid_api_key');
  });

  it.each([[''], ['x'.repeat(256)], ['h\u00e9']])('%j is invalid_argument', async (key) => {
    const node = await start(made);
    expect((await create(node, key)).code).toBe('invalid_argument');
  });

  it('a retry may come through another transport', async () => {
    const node = await start(made, { grpc: true });
    const first = await create(node, 'a');
    const client = grpcClient(node.grpcAddress);
    const headers = { ...bearer, 'idempotency-key': 'a' };
    const again = await callGrpc(client, DeveloperService.method.createApiKey, { name: 'n' }, headers);
    const connect = await post(node, '/svc.v1.DeveloperService/CreateApiKey', 'a', '{"name":"n"}');
    client.close();
    expect(again.message).toMatchObject({ keyId: first.body.key_id });
    expect(again.metadata.get('idempotent-replayed')).toEqual(['true']);
    expect(await connect.json()).toMatchObject({ keyId: first.body.key_id });
    expect(connect.headers.get('idempotent-replayed')).toBe('true');
  });
});

describe('on a call that writes to a ledger', () => {
  it('the command’s key is the same through every transport, and no claim is kept', async () => {
    const commandKeys: (CommandKey | null)[] = [];
    const node = await start(made, {
      grpc: true,
      append: async (_request, call) => {
        commandKeys.push(call.commandKey);
        call.markReplayed();
        return {};
      },
    });
    const headers = { ...bearer, 'idempotency-key': 'a' };
    const body = '{"payload":{"b":1.0,"a":"\\u0041"},"event_type":"X"}';
    const rest = await post(node, `/v1/traceledger/master/${masterId}/events`, 'a', body);
    const client = grpcClient(node.grpcAddress);
    const append = (payload: string, sent: Record<string, string>) =>
      callGrpc(client, MasterService.method.appendEvent, { uuid: masterId, eventType: 'X', payload }, sent);
    const grpc = await append('{"a":"A", "b":1}', headers);
    await append('{"a":"A","b":2}', headers);
    await append('{}', bearer);
    client.close();
    expect(rest.headers.get('idempotent-replayed')).toBe('true');
    expect(grpc.metadata.get('idempotent-replayed')).toEqual(['true']);
    const [first, second, other, none] = commandKeys as [CommandKey, CommandKey, CommandKey, null];
    expect(first).toEqual(second);
    expect([first.id, none]).toEqual([commandId(actorId, 'a'), null]);
    expect([other.id === first.id, other.fingerprint === first.fingerprint]).toEqual([true, false]);
    expect(await node.records.get('idempotency', first.id)).toBe(null);
  });

  it('ids of different actors and keys do not meet', () => {
    expect(commandId(actorId, 'a')).not.toBe(commandId(otherActorId, 'a'));
    expect(commandId('ab', 'c')).not.toBe(commandId('a', 'bc'));
  });
});
