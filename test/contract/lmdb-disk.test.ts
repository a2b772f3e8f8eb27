import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isNightly } from '../support/nightly.ts';
import { startNodeProcess } from '../support/node-process.ts';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { testDir } from '../support/running-node.ts';
import { childLedgers, countBatches } from '../support/store-lmdb-batches.ts';
import { acknowledged, type StoreChild, startChild } from '../support/store-lmdb-process.ts';
import { readTrace, type SystemCall, whyNoStrace } from '../support/system-calls.ts';
import { madeDataDir, openDir } from './lmdb-factory.ts';

const whyNot = whyNoStrace();
const ACKS_TO_SEE = 60;
/** The last lines of a trace are lost when the tracer is killed. */
const SPARE = 10;
const CALLS = 'trace=fdatasync,pwrite64,write,openat';

describe.skipIf(whyNot !== null)(`LMDB stores and the disk${whyNot === null ? '' : ` (skipped: ${whyNot})`}`, () => {
  test('acknowledge an append after a flush and a meta page write that began after it', async () => {
    const { calls, child } = await traced([], (running) => running.line('ack', ACKS_TO_SEE + SPARE));
    expect(child.lines.some((line) => line.startsWith('fatal'))).toBe(false);
    expect(checkFlushes(calls).length).toBeGreaterThanOrEqual(ACKS_TO_SEE);
  }, 60_000);

  test('answer an append of a whole node after a flush that began after its request', async () => {
    const dataDir = testDir();
    const trace = join(dataDir, 'trace');
    const under = ['strace', '-f', '-qq', '-s', '160', '-e', `${CALLS},read,writev`, '-e', 'signal=none', '-o', trace];
    await using node = await startNodeProcess({ DATA_DIR: join(dataDir, 'data') }, under);
    const order = await newOrder(node.base);
    const master = await newMaster(order);
    expect((await append(master, order.supplier, 'NOTED', { n: 1 })).status).toBe(200);
    await node.terminate();
    const calls = readTrace(trace);
    const { received, answered } = exchange(calls, `POST /v1/traceledger/master/${master.uuid}/events `);
    expect(flushWithin(calls, received.endedAt, answered.beganAt)).toBeDefined();
  }, 60_000);

  // What LMDB does when it cannot write is the same for both reasons.
  const faults: readonly (readonly [fault: string, what: string])[] = [
    ['fdatasync:error=EIO:when=8+', 'the flush fails'],
    ['pwrite64:error=ENOSPC:when=40+', 'the disk is full'],
    ...(isNightly ? [['pwrite64:error=EIO:when=41+', 'writing fails'] as const] : []),
  ];
  test.each(faults)(
    '(%s) acknowledge nothing after %s, report it, and keep acknowledged appends',
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
      await using stores = await openDir(dataDir);
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
  // The directory is made without faults, so that the counts of calls are those of appends.
  const dataDir = await madeDataDir();
  const trace = join(dataDir, '..', 'trace');
  const under = ['strace', '-f', '-qq', '-s', '80', '-e', CALLS, '-e', 'signal=none', ...options, '-o', trace];
  await using child = startChild(['append', dataDir], under);
  await until(child);
  await child.kill();
  return { calls: readTrace(trace), child, dataDir };
}

/** The flush before each acknowledgement and after the request of its append. Throws if there is none. */
function checkFlushes(calls: readonly SystemCall[]): SystemCall[] {
  return calls.filter(said('ack')).map((ack) => {
    const asked = calls.find((call) => said('recv')(call) && call.args.includes(textOf(ack).replace('ack', 'recv')));
    if (asked === undefined) throw new Error(`Never asked for: ${ack.args}`);
    const flush = flushWithin(calls, asked.endedAt, ack.beganAt);
    if (flush === undefined) throw new Error(`Not flushed: ${ack.args}`);
    return flush;
  });
}

/** A successful fdatasync of the data, followed by a successful synchronous write, both within these places. */
function flushWithin(calls: readonly SystemCall[], from: number, to: number): SystemCall | undefined {
  const syncFiles = new Set(
    calls
      .filter(({ name, args }) => name === 'openat' && args.includes('data.mdb') && args.includes('O_DSYNC'))
      .map(({ result }) => result),
  );
  const good = (call: SystemCall, after: number) =>
    call.beganAt > after && call.endedAt < to && /^\d/.test(call.result);
  return calls.find(
    (sync) =>
      sync.name === 'fdatasync' &&
      good(sync, from) &&
      calls.some((meta) => meta.name === 'pwrite64' && syncFiles.has(fileOf(meta)) && good(meta, sync.endedAt)),
  );
}

/** The calls that read a request that begins so from its socket, and wrote its answer, a 200. */
function exchange(calls: readonly SystemCall[], request: string) {
  const received = calls.find(({ name, args }) => name === 'read' && args.includes(`"${request}`));
  if (received === undefined) throw new Error(`Never read: ${request}`);
  const answered = calls.find(
    (call) =>
      call.name.startsWith('write') &&
      fileOf(call) === fileOf(received) &&
      call.beganAt > received.endedAt &&
      call.args.includes('HTTP/1.1 200 '),
  );
  if (answered === undefined) throw new Error(`Never answered: ${request}`);
  return { received, answered };
}

function fileOf({ args }: SystemCall): string {
  return args.slice(0, args.indexOf(','));
}

function said(word: string): (call: SystemCall) => boolean {
  return ({ name, args }) => name === 'write' && args.startsWith(`1, "${word} `);
}

/** The line that was written, with its end, so that batch 1 is not found in batch 10. */
function textOf(call: SystemCall): string {
  return call.args.slice(call.args.indexOf('"') + 1, call.args.lastIndexOf('"'));
}
