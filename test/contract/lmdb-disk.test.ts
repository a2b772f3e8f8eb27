import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openLmdb } from '../../src/store/lmdb/open.ts';
import { childLedgers, countBatches } from '../support/store-lmdb-batches.ts';
import { acknowledged, type StoreChild, startChild } from '../support/store-lmdb-process.ts';
import { readTrace, type SystemCall, whyNoStrace } from '../support/system-calls.ts';
import { newDataDir } from './lmdb-factory.ts';

const whyNot = whyNoStrace();
const ACKS_TO_SEE = 60;
/** The last lines of a trace are lost when the tracer is killed. */
const SPARE = 10;
const CALLS = 'trace=fdatasync,pwrite64,write,openat';

describe.skipIf(whyNot !== null)(`LMDB stores and the disk${whyNot === null ? '' : ` (skipped: ${whyNot})`}`, () => {
  test('every acknowledgement comes after a flush, and a synchronous write of the meta page, that began after the append was asked for', async () => {
    const { calls, child } = await traced([], (running) => running.line('ack', ACKS_TO_SEE + SPARE));
    expect(child.lines.some((line) => line.startsWith('fatal'))).toBe(false);
    expect(checkFlushes(calls).length).toBeGreaterThanOrEqual(ACKS_TO_SEE);
  }, 60_000);

  test.each([
    ['fdatasync:error=EIO:when=8+', 'the flush fails'],
    ['pwrite64:error=ENOSPC:when=40+', 'the disk is full'],
    ['pwrite64:error=EIO:when=41+', 'writing fails'],
  ])(
    '%s: nothing is acknowledged after %s, the node is told, and what was acknowledged is there',
    async (fault) => {
      const { calls, child, dataDir } = await traced(['-e', `inject=${fault}`], (running) => running.ended());
      const failed = calls.filter(({ name, result }) => fault.startsWith(name) && result.startsWith('-1'));
      const firstFailure = Math.min(...failed.map(({ endedAt }) => endedAt));
      expect(failed.length).toBeGreaterThan(0);
      for (const { endedAt } of checkFlushes(calls)) expect(endedAt).toBeLessThan(firstFailure);
      const { lines } = child;
      expect(acknowledged(lines).size).toBeGreaterThan(0);
      expect(lines.filter((line) => line.startsWith('fatal A write to the disk failed')).length).toBe(1);
      expect(
        lines.slice(lines.findIndex((line) => line.startsWith('fatal'))).some((line) => line.startsWith('ack')),
      ).toBe(false);
      expect(lines.filter((line) => line.startsWith('end '))).toEqual(childLedgers.map(() => 'end OutcomeUnknown'));
      expect(lines.filter((line) => line.startsWith('later '))).toEqual(Array(4).fill('later unavailable'));
      await using stores = await openLmdb({ dataDir, now: Date.now, onFatal: () => {} });
      for (const ledgerId of childLedgers)
        expect(await countBatches(stores.ledgers, ledgerId)).toBeGreaterThanOrEqual(
          acknowledged(lines).get(ledgerId) ?? 0,
        );
    },
    60_000,
  );
});

/** Runs a child that appends for ever under strace until `until` resolves. */
async function traced(options: readonly string[], until: (child: StoreChild) => Promise<unknown>) {
  const dataDir = await newDataDir();
  // The directory is made without faults, so that the counts of calls are those of appends.
  await (await openLmdb({ dataDir, now: Date.now, onFatal: () => {} }))[Symbol.asyncDispose]();
  const trace = join(dataDir, '..', 'trace');
  const under = ['strace', '-f', '-qq', '-s', '80', '-e', CALLS, '-e', 'signal=none', ...options, '-o', trace];
  await using child = startChild(['append', dataDir], under);
  await until(child);
  await child.kill();
  return { calls: readTrace(trace), child, dataDir };
}

/**
 * The flush behind each acknowledgement: the last fdatasync of the data that began after its append was asked for and
 * had ended well, with a write to the file opened for synchronous writing behind it, before the acknowledgement.
 * Throws where there is none.
 */
function checkFlushes(calls: readonly SystemCall[]): SystemCall[] {
  const syncFiles = new Set(
    calls
      .filter(({ name, args }) => name === 'openat' && args.includes('data.mdb') && args.includes('O_DSYNC'))
      .map(({ result }) => result),
  );
  const good = (call: SystemCall, from: number, to: number) =>
    call.beganAt > from && call.endedAt < to && /^\d/.test(call.result);
  return calls.filter(said('ack')).map((ack) => {
    const asked = calls.find((call) => said('recv')(call) && call.args.includes(textOf(ack).replace('ack', 'recv')));
    if (asked === undefined) throw new Error(`Never asked for: ${ack.args}`);
    const flush = calls.find(
      (sync) =>
        sync.name === 'fdatasync' &&
        good(sync, asked.endedAt, ack.beganAt) &&
        calls.some(
          (meta) =>
            meta.name === 'pwrite64' &&
            syncFiles.has(meta.args.slice(0, meta.args.indexOf(','))) &&
            good(meta, sync.endedAt, ack.beganAt),
        ),
    );
    if (flush === undefined) throw new Error(`Not flushed: ${ack.args}`);
    return flush;
  });
}

function said(word: string): (call: SystemCall) => boolean {
  return ({ name, args }) => name === 'write' && args.startsWith(`1, "${word} `);
}

/** The line that was written, with its end, so that batch 1 is not found in batch 10. */
function textOf(call: SystemCall): string {
  return call.args.slice(call.args.indexOf('"') + 1, call.args.lastIndexOf('"'));
}
