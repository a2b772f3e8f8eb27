import { invalidField } from '../domain/errors.ts';

/** Query `order`: true for 'desc', false for 'asc' or none. */
export function checkOrder(order: string | undefined): boolean {
  if (order === undefined || order === 'asc') return false;
  if (order === 'desc') return true;
  throw invalidField('order', '"asc" or "desc"');
}
