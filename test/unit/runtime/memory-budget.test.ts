import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import { defaultMemoryBudgetBytes, MemoryBudget } from '../../../src/runtime/limits/memory-budget.ts';

const MiB = 1024 * 1024;

describe('MemoryBudget', () => {
  test('refuses what would exceed the bound and counts nothing', () => {
    const budget = new MemoryBudget(1_024);
    budget.hold('request', 1_000);
    expect(budget.hold('answer', 64)).toBe(false);
    expect(budget.heldBytes('answer')).toBe(0);
    expect(budget.heldBytes()).toBe(1_024);
  });

  test('holds again what was released', () => {
    const budget = new MemoryBudget(1_024);
    budget.hold('request', 1_000);
    budget.release('request', 1_000);
    expect(budget.heldBytes()).toBe(0);
    expect(budget.hold('read', 1_024)).toBe(true);
  });

  test('refuses others while added bytes exceed the bound', () => {
    const budget = new MemoryBudget(1_024);
    budget.add('stream', 2_048);
    expect(budget.hold('read', 1)).toBe(false);
    budget.release('stream', 2_048);
    expect(budget.hold('read', 1)).toBe(true);
  });

  test('gives small requests a sixteenth of the bound while all else fills it', () => {
    const budget = new MemoryBudget(16 * 1_024);
    budget.add('read', 20 * 1_024);
    expect([budget.hold('request', 64), budget.hold('small', 1_024), budget.hold('small', 64)]).toEqual([
      false,
      true,
      false,
    ]);
    expect(budget.heldBytes()).toBe(21 * 1_024);
    budget.release('read', 20 * 1_024);
    expect(budget.hold('small', 15 * 1_024)).toBe(true);
  });

  test('counts each kind separately', () => {
    const budget = new MemoryBudget(MiB);
    budget.hold('request', 64);
    budget.hold('peer', 128);
    expect([budget.heldBytes('request'), budget.heldBytes('peer'), budget.heldBytes()]).toEqual([64, 128, 192]);
  });

  test('counts together with another thread', async () => {
    const budget = new MemoryBudget(MiB);
    const url = new URL('../../../src/runtime/limits/memory-budget.ts', import.meta.url);
    const code = `
      const { workerData } = require('node:worker_threads');
      import(${JSON.stringify(url.href)}).then(({ MemoryBudget }) => MemoryBudget.of(workerData).hold('request', 6400));`;
    const worker = new Worker(code, { eval: true, workerData: budget.shared });
    await new Promise((resolve, reject) => worker.on('exit', resolve).on('error', reject));
    expect(budget.heldBytes('request')).toBe(6_400);
  });
});

describe('defaultMemoryBudgetBytes', () => {
  test('is a quarter of the smaller of memory and heap', () => {
    expect(defaultMemoryBudgetBytes(512 * MiB, 2_048 * MiB)).toBe(128 * MiB);
    expect(defaultMemoryBudgetBytes(4_096 * MiB, 320 * MiB)).toBe(80 * MiB);
  });

  test('is 256 MiB at most', () => {
    expect(defaultMemoryBudgetBytes(64 * 1_024 * MiB, 4_096 * MiB)).toBe(256 * MiB);
  });
});
