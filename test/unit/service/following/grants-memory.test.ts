import { expect, test } from 'vitest';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import { GrantsMemory } from '../../../../src/service/following/grants-memory.ts';

const unit = 256;

class Holder {
  readonly actorId: string;
  heldBytes = 0;
  hasEnded = false;
  constructor(actorId: string) {
    this.actorId = actorId;
  }
  endAsOverloaded(): void {
    this.hasEnded = true;
  }
}

/** Room for 12 grants, in a budget of 48. */
function memoryOf(): { readonly budget: MemoryBudget; readonly grants: GrantsMemory } {
  const budget = new MemoryBudget(48 * unit);
  return { budget, grants: new GrantsMemory(budget) };
}

function holding(grants: GrantsMemory, actorId: string, count: number): Holder {
  const holder = new Holder(actorId);
  expect(grants.hold(holder, count * unit)).toBe(true);
  holder.heldBytes = count * unit;
  return holder;
}

test('an access that is refused because the whole budget is full ends no other', () => {
  const { budget, grants } = memoryOf();
  const large = holding(grants, 'large', 12);
  budget.add('request', 36 * unit);
  expect(grants.hold(new Holder('small'), unit)).toBe(false);
  expect([large.hasEnded, budget.heldBytes('stream')]).toEqual([false, 12 * unit]);
  budget.release('request', unit);
  expect(grants.hold(new Holder('small'), unit)).toBe(true);
  expect(large.hasEnded).toBe(true);
});

test('an access that is refused because its actor has more than its part is not counted', () => {
  const { budget, grants } = memoryOf();
  holding(grants, 'small', 1);
  holding(grants, 'large', 10);
  expect(grants.hold(new Holder('large'), 2 * unit)).toBe(false);
  expect(budget.heldBytes()).toBe(11 * unit);
});

test('of the actor with most only the largest accesses end that free enough', () => {
  const { grants } = memoryOf();
  const [one, two, three] = [2, 6, 4].map((count) => holding(grants, 'large', count));
  holding(grants, 'small', 5);
  expect([one, two, three].map((holder) => holder?.hasEnded)).toEqual([false, true, false]);
  // The one that ends has not left yet.
  holding(grants, 'other', 1);
  expect([one, two, three].map((holder) => holder?.hasEnded)).toEqual([false, true, false]);
  holding(grants, 'another', 1);
  expect([one, two, three].map((holder) => holder?.hasEnded)).toEqual([false, true, true]);
});
