import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exitCodes } from '../../src/cli/terminal/exit-codes.ts';
import { startNodeProcess } from '../support/node-process.ts';
import { append, eventsOf, newMaster, newOrder } from '../support/parties.ts';
import type { RestAnswer } from '../support/parties-rest.ts';
import { runNode, temporaryDir } from '../support/running-node.ts';

/**
 * No file of the node may become longer, as on a full disk: writes end with EFBIG (Node ignores SIGXFSZ). Needs no
 * rights of root.
 */
const fullAt4Mebibytes = ['bash', '-c', 'ulimit -f 4096; exec "$@"', 'bash'];
const text = 'x'.repeat(60_000);

test('a node with a full disk refuses writes with 503 or 504, serves reads, and exits with 74', async () => {
  const DATA_DIR = join(temporaryDir(), 'data');
  await using node = await startNodeProcess({ DATA_DIR }, fullAt4Mebibytes);
  const order = await newOrder(node.base);
  const master = await newMaster(order);
  const written: unknown[] = [];
  const refused: RestAnswer[] = [];
  const lanes = Array.from({ length: 8 }, async (_, lane) => {
    for (let n = 0; n < 40; n += 1) {
      // A connection that is reset would reject here.
      const answer = await append(master, order.buyer, 'NOTED', { lane, n, text });
      if (answer.status === 200) written.push(answer.body.event_id);
      else refused.push(answer);
      if (refused.length >= 40) return;
    }
  });
  await Promise.all(lanes);
  expect(written.length).toBeGreaterThan(8);
  expect(new Set(refused.map(({ status, code }) => `${status} ${code}`))).toEqual(
    new Set(['503 unavailable', '504 outcome_unknown']),
  );
  const texts = refused.map(({ body }) => JSON.stringify(body));
  expect(texts).toContainEqual(expect.stringContaining('Nothing was written: this node cannot write to its disk'));

  const readable = await eventsOf(node.base, order.supplier, order.ledgerId, '&event_type=NOTED');
  expect(readable.length).toBeGreaterThanOrEqual(1);
  const { status, db } = (await (await fetch(`${node.base}/health`)).json()) as { status: string; db: object[] };
  expect([status, db]).toEqual(['degraded', [{ name: 'lmdb', status: 'unavailable' }]]);
  const ready = await fetch(`${node.opsBase}/health/ready`);
  const { reason } = (await ready.json()) as { reason: string };
  expect([ready.status, reason]).toEqual([503, expect.stringContaining('disk')]);
  expect((await fetch(`${node.opsBase}/health/live`)).status).toBe(200);
  expect(await (await fetch(`${node.opsBase}/metrics`)).text()).toContain('\nsvc_store_writable 0\n');

  const { code, stdout, stderr } = await node.terminate();
  expect(code).toBe(exitCodes.writeFailed);
  const errors = stdout.split('\n').filter((line) => line.includes('"level":"error"') && line.includes('DATA_DIR'));
  expect(errors.map((line) => JSON.parse(line).msg)).toEqual([
    expect.stringMatching(/^a write to the disk failed.*free space.*start the node again/),
  ]);
  expect(stderr).toContain('ledger-trust: the disk failed, so the node stops: ');
  expect(stderr).not.toContain('Commit failed (see commitError for details)');

  await using again = await runNode({ dataDir: DATA_DIR });
  const ids = new Set((await eventsOf(again.base, order.supplier, order.ledgerId)).map(({ id }) => id));
  for (const id of written) expect(ids.has(id)).toBe(true);
  await again.stop();
  rmSync(DATA_DIR, { recursive: true });
}, 60_000);
