import { LedgerError } from '../../domain/errors.ts';

export function outOfMemoryBudget(): LedgerError {
  return new LedgerError(
    'overloaded',
    'This node holds as much in memory as it may; nothing was written, retry in a moment.',
    { bound: 'MEMORY_BUDGET_MIB' },
  );
}
