import { describe, expect, test } from 'vitest';
import type { FollowParts } from '../../../../src/client/follow/follow.ts';
import { type Event, type FollowOptions, ProofRefused } from '../../../../src/client/index.ts';
import { CompactRange } from '../../../../src/domain/log/compact-range.ts';
import { formatProofFile } from '../../../../src/domain/log/proof-file.ts';
import { leafHash } from '../../../../src/domain/log/tree.ts';
import { logVectors, ofHex } from '../../../support/log-vectors.ts';
import {
  allSeqs,
  behind,
  heartbeatAt,
  ledgerId,
  lost,
  messageOf,
  noProofs,
  scriptedService,
  wholeLedger,
} from '../../../support/scripted-streams.ts';
import { chain, checkpointOf, masterA, ofMasterA } from '../../../support/vector-chain.ts';

/** The checkpoint of a size, or of another history. */
const signed = (size: number, root: Uint8Array = checkpointOf(size).root) => ({
  ...checkpointOf(size),
  root,
  note: '',
});

describe('a checkpoint of a heartbeat', () => {
  const [first, second] = chain as readonly [Event, Event];
  const kept = (takeNote: FollowParts['proofs']['takeNote']) =>
    scriptedService(
      () => ({ messages: [messageOf(first), heartbeatAt(first, 'a note'), ...behind(first.seq)], end: null }),
      chain,
      { ...noProofs, takeNote },
    );

  test('is verified and kept as one of the ledger or the master that is followed', async () => {
    const taken: unknown[] = [];
    const takeNote: FollowParts['proofs']['takeNote'] = async (log, note) => {
      taken.push([log, note]);
      return log.kind === 'ledger' ? signed(5) : { ...checkpointOf(3, logVectors.masters[0]), note };
    };
    expect(await kept(takeNote).follow(wholeLedger)).toMatchObject({ seqs: allSeqs, code: null });
    expect(taken).toEqual([[{ kind: 'ledger', id: ledgerId }, 'a note']]);
    const ofMaster = scriptedService(
      () => ({ messages: [...ofMasterA.map(messageOf), heartbeatAt(second, 'its note')], end: null }),
      chain,
      { ...noProofs, takeNote },
    );
    expect((await ofMaster.follow({ masterId: masterA, after: -1 })).code).toBe(null);
    expect(taken[1]).toEqual([{ kind: 'master', id: masterA }, 'its note']);
  });

  test('that is refused ends following with the refusal, even if the stream ends meanwhile', async () => {
    const refusal = new ProofRefused('checkpoints_contradict', 'they contradict', ['one', 'other']);
    let refuse = () => {};
    const late = new Promise<never>((_, reject) => {
      refuse = () => reject(refusal);
    });
    const { following } = kept(() => late);
    const seqs: number[] = [];
    const reading = (async () => {
      for await (const event of following.follow(wholeLedger)) {
        seqs.push(event.seq);
        if (event.seq === chain.length - 1) refuse();
      }
    })();
    await expect(reading).rejects.toBe(refusal);
  });

  test.each([1, 3, 5, 9])('is compared with the events that were handed out, if it covers %i', async (size) => {
    for (const count of [1, 4, 5, 9]) {
      const messages = [...chain.slice(0, count).map(messageOf), heartbeatAt(chain[count - 1] as Event, 'a note')];
      const script = () => ({ messages: [...messages, ...behind(count - 1)], end: null });
      const noting = (root?: Uint8Array) =>
        scriptedService(script, chain, { ...noProofs, takeNote: async () => signed(size, root) });
      expect(await noting().follow(wholeLedger)).toMatchObject({ seqs: allSeqs, code: null });
      const lie = noting(new Uint8Array(32));
      expect(await lie.follow(wholeLedger)).toMatchObject({ code: 'integrity_failed', types: ['wrong_checkpoint'] });
      const taken = Array.fromAsync(lie.following.follow(wholeLedger));
      await expect(taken).rejects.toThrow(`What was handed out does not verify: the first ${size} events do not have`);
      const told: string[] = [];
      const onIssues: FollowOptions['onIssues'] = (issues) => void told.push(...issues.map(({ type }) => type));
      expect(await lie.follow(wholeLedger, { onIssues })).toMatchObject({ seqs: allSeqs, code: null });
      expect(told).toEqual(['wrong_checkpoint']);
    }
  });

  test('is compared from the middle of the ledger on too, once the event before is proved', async () => {
    const range = new CompactRange();
    for (const { hash } of chain.slice(0, 5)) range.append(leafHash(ofHex(hash)));
    const proof = formatProofFile({ index: 5, hashes: range.hashes().toReversed(), checkpoint: '' });
    const proven: number[] = [];
    const proveRecord: FollowParts['proofs']['proveRecord'] = async (_log, { index }) => {
      proven.push(index);
      return { index, checkpoint: signed(index + 1), proof };
    };
    const noting = (root?: Uint8Array) =>
      scriptedService(
        () => ({ messages: [heartbeatAt(chain[6] as Event, 'a note'), ...behind(5)], end: null }),
        chain,
        {
          ...noProofs,
          proveRecord,
          takeNote: async () => signed(8, root),
        },
      );
    expect(await noting().follow({ ledgerId, after: 5 })).toMatchObject({ seqs: [6, 7, 8], code: null });
    const { code, types } = await noting(new Uint8Array(32)).follow({ ledgerId, after: 5 });
    expect([code, types]).toEqual(['integrity_failed', ['wrong_checkpoint']]);
    expect(proven).toEqual([5, 5]);
  });

  test('that contradicts the events is told, also if the service proves no agreement with the kept one', async () => {
    const { follow } = kept(async (_log, _note, _options, verified) => {
      verified?.(signed(1, new Uint8Array(32)));
      throw lost();
    });
    expect(await follow(wholeLedger)).toMatchObject({ code: 'integrity_failed', types: ['wrong_checkpoint'] });
  });

  test('that contradicts both the kept one and the events is refused with both notes', async () => {
    const refusal = new ProofRefused('checkpoints_contradict', 'they contradict', ['one', 'other']);
    const { following } = kept(async (_log, _note, _options, verified) => {
      verified?.(signed(1, new Uint8Array(32)));
      throw refusal;
    });
    await expect(Array.fromAsync(following.follow(wholeLedger))).rejects.toBe(refusal);
  });

  test('that cannot be compared just now is passed over', async () => {
    const { follow } = kept(() => Promise.reject(lost()));
    expect(await follow(wholeLedger)).toMatchObject({ seqs: allSeqs, code: null });
  });

  test('is left out by services that sign none', async () => {
    const { follow } = scriptedService(
      () => ({ messages: [messageOf(first), heartbeatAt(first, null), ...behind(first.seq)], end: null }),
      chain,
      { ...noProofs, takeNote: () => Promise.reject(new Error('there is none')) },
    );
    expect(await follow(wholeLedger)).toMatchObject({ seqs: allSeqs, code: null });
  });
});
