import { describe, expect, test, vi } from 'vitest';
import {
  appendAll,
  damage,
  emptyProofData,
  laterClock,
  ledgerLog,
  longChain,
  nodesOver,
  originIn,
  type ProofData,
  ProvingNode,
  refusal,
} from '../../../support/proofs-rig.ts';

const chain = longChain(1_500);

const nodeWith = nodesOver(chain);

describe('a log that has other events than were signed is behind', () => {
  /** A node over a store with other events than were signed. `restore` puts the right ones back. */
  async function withOtherEvents(events = 1_500, change: (data: ProofData) => void = () => {}) {
    const signed = emptyProofData();
    const right = await (await nodeWith(events, signed)).newest(ledgerLog);
    const data: ProofData = {
      ledgers: emptyProofData().ledgers,
      trees: { ...emptyProofData().trees, heads: signed.trees.heads },
    };
    const other = longChain(2_000);
    await nodesOver(other)(events, data);
    change(data);
    const time = { laterMs: 0 };
    const node = new ProvingNode(data, { clock: laterClock(time) });
    const restore = () => {
      for (const [id, ledger] of signed.ledgers.ledgers) data.ledgers.ledgers.set(id, ledger);
    };
    /** Resolves once the tree was made anew, and with that the log was found to be behind. */
    const found = async () => {
      await vi.waitFor(async () =>
        expect(await refusal(node.newest(ledgerLog))).toEqual(['unavailable', 'log_behind']),
      );
    };
    return { data, node, time, right, restore, found, later: other.slice(events) };
  }

  test('also while it grows and is asked for once in ten minutes, and its tree is not made anew for each call', async () => {
    const { node, time, found, later } = await withOtherEvents();
    await found();
    const { tiles } = node.counts;
    for (const [at, entry] of later.slice(0, 50).entries()) {
      await appendAll(node.store, [entry]);
      time.laterMs += at < 40 ? 11_000 : 660_000;
      expect(await refusal(node.newest(ledgerLog))).toEqual(['unavailable', 'log_behind']);
      expect(node.behind.isEmpty).toBe(false);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    // Ten times at most, from the 11 minutes on.
    expect(node.counts.tiles - tiles).toBeLessThanOrEqual(11 * 6);
  });

  test('also where a full tile ends with the signed head', async () => {
    const { node, found } = await withOtherEvents(1_024, (data) => {
      damage(data, { owner: originIn(ledgerLog), level: 0, position: 1_024 });
    });
    await found();
    expect(node.behind.isEmpty).toBe(false);
  });

  test('without a call that asks again', async () => {
    const { node } = await withOtherEvents();
    expect(await refusal(node.newest(ledgerLog))).toEqual(['unavailable', 'tree_building']);
    await vi.waitFor(() => expect(node.behind.isEmpty).toBe(false));
  });

  test('until its events are back and another node has made its tree anew', async () => {
    const { data, node, time, right, restore, found } = await withOtherEvents();
    await found();
    restore();
    const other = new ProvingNode(data);
    await vi.waitFor(async () => expect(await other.newest(ledgerLog)).toEqual(right));
    time.laterMs = 10_000;
    expect(await node.newest(ledgerLog)).toEqual(right);
    expect(node.behind.isEmpty).toBe(true);
    // From here on a disagreement is one of the tiles again.
    damage(data, { owner: originIn(ledgerLog), level: 1, position: 0 });
    expect(await refusal(node.at(ledgerLog, 512))).toEqual(['unavailable', 'tree_building']);
  });

  test('until its events are back, which is looked for after ten minutes', async () => {
    const { node, time, right, restore, found } = await withOtherEvents();
    await found();
    restore();
    time.laterMs = 10_000;
    expect(await refusal(node.newest(ledgerLog))).toEqual(['unavailable', 'log_behind']);
    time.laterMs = 600_000;
    await vi.waitFor(async () => {
      time.laterMs += 10_000;
      expect(await node.newest(ledgerLog)).toEqual(right);
    });
    expect(node.behind.isEmpty).toBe(true);
  });
});
