import { expect, test } from 'vitest';
import { eventFromJson } from '../../../../src/client/call/answer-encoding.ts';
import { type LedgerTrustClient, LedgerTrustError, ProofRefused } from '../../../../src/client/index.ts';
import { events, ledgerId } from '../../../support/export-of-vectors.ts';
import { forgeries } from '../../../support/forged-answers.ts';
import {
  type Lies,
  ledgerOrigin,
  logKey,
  masterId,
  masterOrigin,
  otherKey,
  provingService,
} from '../../../support/proving-service.ts';

const event = (seq: number) => eventFromJson(events[seq]);

/** The reason or the code of the refusal. */
async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'accepted';
  } catch (error) {
    if (error instanceof ProofRefused) return error.reason;
    if (error instanceof LedgerTrustError) return error.code;
    throw error;
  }
}

const ledger = (client: LedgerTrustClient) => client.checkpoint(ledgerId);
const proof = (client: LedgerTrustClient) => client.proveEvent(event(4));

const calls = {
  ledger,
  master: (client: LedgerTrustClient) => client.masterCheckpoint(masterId),
  size: (client: LedgerTrustClient) => client.checkpoint(ledgerId, { size: 5 }),
  proof,
};

test.each(forgeries)('%s is refused', async (_what, call, lie, expected) => {
  const { client, lies } = await provingService();
  Object.assign(lies, lie);
  expect(await refusal(calls[call](client))).toBe(expected);
  // The same calls are taken from an honest service.
  const honest = await provingService();
  expect(await refusal(calls[call](honest.client))).toBe('accepted');
});

test('an event whose payload was changed is refused, also if it keeps its hashes', async () => {
  const { client } = await provingService();
  const forged = { ...event(4), payload: { ...event(4).payload, pallets: 99 } };
  expect(await refusal(client.proveEvent(forged))).toBe('wrong_event');
  expect(await refusal(client.proveEvent({ ...event(4), hash: 'no hash' }))).toBe('wrong_event');
});

test('an event at another place is refused', async () => {
  const { client } = await provingService();
  expect(await refusal(client.proveEvent({ ...event(4), seq: 5 }))).toBe('wrong_event');
});

const kept = (client: LedgerTrustClient, lies: Lies, size: number) => {
  lies.newest = size;
  return client.checkpoint(ledgerId);
};

test('a smaller checkpoint than the kept one is behind, and the error has both notes', async () => {
  const { client, lies } = await provingService();
  const { note } = await kept(client, lies, 7);
  const error = await kept(client, lies, 6).catch((e) => e);
  expect(error).toMatchObject({
    reason: 'checkpoint_behind',
    notes: [note, expect.stringContaining(`${ledgerOrigin}\n6\n`)],
  });
  expect((await kept(client, lies, 8)).size).toBe(8);
});

test.each([
  [6, 8],
  [6, 6],
])('a checkpoint of a rewritten log contradicts the kept one: sizes %d and %d', async (before, after) => {
  const { client, lies } = await provingService();
  const { note } = await kept(client, lies, before);
  lies.rewrittenAt = 2;
  const error = await kept(client, lies, after).catch((e) => e);
  expect(error).toMatchObject({ reason: 'checkpoints_contradict' });
  expect(error.notes).toEqual([note, expect.stringContaining(`${ledgerOrigin}\n${after}\n`)]);
  expect(error.notes[0]).not.toBe(error.notes[1]);
  // The kept one stays: the honest log still continues it.
  lies.rewrittenAt = null;
  expect((await kept(client, lies, 9)).size).toBe(9);
});

test('a proof of consistency with a hash left over shows no agreement', async () => {
  const { client, lies } = await provingService();
  await kept(client, lies, 6);
  lies.hashes = (hashes) => [...hashes, new Uint8Array(32)];
  expect(await refusal(kept(client, lies, 8))).toBe('checkpoints_contradict');
});

test('a service that answers no proof of consistency leaves both notes in the error, and the kept one stays', async () => {
  const { client, lies } = await provingService();
  const { note } = await kept(client, lies, 6);
  Object.assign(lies, { rewrittenAt: 2, showsConsistency: false });
  const error = await kept(client, lies, 8).catch((e) => e);
  expect(error).toBeInstanceOf(LedgerTrustError);
  expect(error).toMatchObject({ code: 'not_found', status: 404, requestId: 'r-1' });
  expect(error.notes).toEqual([note, expect.stringContaining(`${ledgerOrigin}\n8\n`)]);
  Object.assign(lies, { rewrittenAt: null, showsConsistency: true });
  expect((await kept(client, lies, 9)).size).toBe(9);
});

test('a checkpoint of a given size is compared with the kept one too, and does not count as behind', async () => {
  const { client, lies } = await provingService();
  await kept(client, lies, 8);
  expect((await client.checkpoint(ledgerId, { size: 5 })).size).toBe(5);
  lies.rewrittenAt = 2;
  expect(await refusal(client.checkpoint(ledgerId, { size: 5 }))).toBe('checkpoints_contradict');
});

test('the own place of an event is compared with the kept checkpoint, whichever is larger', async () => {
  for (const size of [3, 9]) {
    const { client, lies } = await provingService();
    await kept(client, lies, size);
    expect((await client.proveEvent(event(4))).checkpoint.size).toBe(5);
    lies.rewrittenAt = 1;
    expect(await refusal(client.proveEvent(event(4)))).toBe('checkpoints_contradict');
  }
});

test('another name of the service is refused, from the trust anchor or in an answer', async () => {
  const { client, lies } = await provingService();
  await kept(client, lies, 7);
  lies.serviceName = 'ledger.example/v1-2027';
  expect(await refusal(kept(client, lies, 8))).toBe('origin_changed');
});

test('a new key is accepted if a pinned key of the authority has endorsed it', async () => {
  const { client, lies } = await provingService();
  await kept(client, lies, 7);
  lies.keys = [logKey, otherKey];
  lies.endorsedBy = otherKey;
  expect(await refusal(kept(client, lies, 8))).toBe('unknown_log_key');
  lies.endorsedBy = (await provingService()).lies.endorsedBy;
  expect((await kept(client, lies, 8)).size).toBe(8);
});

test('where no key of the authority is pinned, as in phase 1, no new log key is accepted', async () => {
  const { client, lies } = await provingService();
  lies.hasAuthority = false;
  await kept(client, lies, 7);
  lies.keys = [logKey, otherKey];
  expect(await refusal(kept(client, lies, 8))).toBe('unknown_log_key');
  // An authority that appears later vouches for nothing.
  lies.hasAuthority = true;
  expect(await refusal(kept(client, lies, 8))).toBe('unknown_log_key');
});

test('calls at the same time do not find each other behind', async () => {
  const { client, lies } = await provingService();
  const sizes = [4, 9, 6, 8];
  const calls = sizes.map(async (size) => (await kept(client, lies, size)).size);
  expect((await Promise.all(calls)).every((size) => size > 0)).toBe(true);
  expect(await refusal(kept(client, lies, 9))).toBe('accepted');
});

test('all logs have watermarks of their own', async () => {
  const { client, lies, seen } = await provingService();
  await kept(client, lies, 7);
  expect(await client.masterCheckpoint(masterId)).toMatchObject({ origin: masterOrigin, size: 4 });
  expect(seen.filter(({ url }) => url.includes('consistency'))).toHaveLength(0);
  expect(seen.filter(({ url }) => url.includes('svc-authority'))).toHaveLength(1);
});

test('each event of the vectors is proved at its own place', async () => {
  const { client } = await provingService();
  for (const [seq] of events.entries()) {
    const proven = await client.proveEvent(event(seq));
    expect(proven).toMatchObject({ index: seq, checkpoint: { origin: ledgerOrigin, size: seq + 1 } });
  }
});
