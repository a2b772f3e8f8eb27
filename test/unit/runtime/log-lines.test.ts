import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { bufferedLines, createLog } from '../../../src/runtime/telemetry/log.ts';

// What SonicBoom calls: the properties of the CommonJS module.
const fs = createRequire(import.meta.url)('node:fs') as typeof import('node:fs');

describe('the lines of the log', () => {
  let dir: string;
  let file: string;

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'log-lines-'));
    file = join(dir, 'log');
  });

  afterEach(() => {
    vi.restoreAllMocks();
    rmSync(dir, { recursive: true });
  });

  const messages = (): unknown[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line).msg);

  test('are in the file soon, also single ones', async () => {
    const log = createLog('info', bufferedLines(file));
    log.info({}, 'first');
    await vi.waitFor(() => expect(messages()).toEqual(['first']), { timeout: 1_000 });
    log.info({}, 'second');
    await vi.waitFor(() => expect(messages()).toEqual(['first', 'second']), { timeout: 1_000 });
  });

  test('are complete and in order with few writes', async () => {
    const log = createLog('info', bufferedLines(file));
    const writes = vi.spyOn(fs, 'write');
    const sent = Array.from({ length: 1_000 }, (_, at) => `line ${at}`);
    for (const message of sent) log.info({}, message);
    await vi.waitFor(() => expect(messages()).toEqual(sent), { timeout: 10_000 });
    expect(writes.mock.calls.length).toBeLessThan(100);
  });

  test('are not left behind during a slow write', async () => {
    const log = createLog('info', bufferedLines(file));
    log.info({}, 'first');
    await vi.waitFor(() => expect(messages()).toEqual(['first']), { timeout: 1_000 });
    // Any flush that is due for the first one is over.
    await sleep(100);
    const { write } = fs;
    const slowly = (...parts: unknown[]) => setTimeout(() => Reflect.apply(write, fs, parts), 200);
    vi.spyOn(fs, 'write').mockImplementationOnce(slowly as unknown as typeof write);
    const long = 'a'.repeat(5_000);
    log.info({}, long);
    log.info({}, 'behind it');
    await vi.waitFor(() => expect(messages()).toEqual(['first', long, 'behind it']), { timeout: 1_000 });
  });

  test('cause no write when there are none', async () => {
    const log = createLog('info', bufferedLines(file));
    log.info({}, 'first');
    await vi.waitFor(() => expect(messages()).toEqual(['first']), { timeout: 1_000 });
    const writes = vi.spyOn(fs, 'write');
    log.debug({}, 'below the level');
    await sleep(200);
    expect(writes).not.toHaveBeenCalled();
    log.info({}, 'second');
    await vi.waitFor(() => expect(writes).toHaveBeenCalledTimes(1), { timeout: 1_000 });
  });
});
