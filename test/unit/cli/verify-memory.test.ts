import { expect, it } from 'vitest';
import type { Terminal } from '../../../src/cli/terminal/terminal.ts';
import { readVerifyInput } from '../../../src/cli/verify/verify-input.ts';
import { events, exported } from '../../support/export-of-vectors.ts';
import { heldBytes } from '../../support/held-bytes.ts';
import { newShell } from '../../support/shell.ts';

const mib = 1024 * 1024;
const { file } = newShell();
/** A file that has a name needs no terminal. */
const terminal = {} as Terminal;

it('what is kept of an event does not keep its line of the export in memory', async () => {
  const payload = { ...events[4]?.payload, note: ' '.repeat(mib) };
  const path = file('large.jsonl', exported(Array.from({ length: 24 }, () => ({ ...events[4], payload }))));
  const { events: read } = await readVerifyInput(terminal, path);
  const before = await heldBytes();
  const kept: unknown[] = [];
  for await (const { id, masterId, contentHash, payload: own } of read())
    kept.push([id, masterId, contentHash, own.business_ref]);
  const held = (await heldBytes()) - before;
  expect(kept).toHaveLength(24);
  expect(held).toBeLessThan(8 * mib);
});

it('the name __proto__ is a member of a payload like any other', async () => {
  const payload = JSON.parse('{"__proto__":{"weight":1},"weight":2}');
  const { events: read } = await readVerifyInput(terminal, file('proto.jsonl', exported([{ ...events[4], payload }])));
  const texts = (await Array.fromAsync(read())).map((event) => JSON.stringify(event.payload));
  expect(texts).toEqual(['{"__proto__":{"weight":1},"weight":2}']);
});
