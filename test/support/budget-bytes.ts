import type { MemoryKind } from '../../src/runtime/limits/memory-budget.ts';

/** What the budget of a running node holds of a kind, as the node says itself. */
export async function budgetBytes({ opsBase }: { readonly opsBase: string }, kind: MemoryKind): Promise<number> {
  const text = await (await fetch(`${opsBase}/metrics`)).text();
  return Number(new RegExp(`^svc_memory_budget_bytes\\{kind="${kind}"\\} (\\d+)$`, 'm').exec(text)?.[1]);
}
