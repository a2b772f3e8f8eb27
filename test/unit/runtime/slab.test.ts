import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Slab } from '../../../src/runtime/collections/slab.ts';

test('a slab holds the added items that were not removed, whatever the order', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constant('add' as const), fc.nat(50))), (steps) => {
      const slots = new Slab<{ readonly name: number }>();
      const model = new Map<number, { readonly name: number }>();
      for (const [name, step] of steps.entries()) {
        if (step === 'add') {
          const item = { name };
          const slot = slots.add(item);
          expect(model.has(slot)).toBe(false);
          model.set(slot, item);
        } else {
          expect(slots.remove(step)).toBe(model.delete(step));
        }
        expect(slots.size).toBe(model.size);
      }
      expect(new Set(slots)).toEqual(new Set(model.values()));
      for (const [slot, item] of model) expect(slots.get(slot)).toBe(item);
    }),
  );
});

test('a slab grows no larger than its most items at a time', () => {
  const slots = new Slab<string>();
  const used = new Set<number>();
  for (let round = 0; round < 1_000; round++) {
    const first = slots.add('first');
    const second = slots.add('second');
    used.add(first).add(second);
    slots.remove(first);
    slots.remove(second);
  }
  expect(used).toEqual(new Set([0, 1]));
});
