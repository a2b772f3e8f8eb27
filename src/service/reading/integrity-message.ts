import type { IntegrityIssue } from '../../domain/event/integrity.ts';

/** The integrity block of an answer. */
export function integrityMessage(issues: readonly IntegrityIssue[]) {
  return {
    verified: issues.length === 0,
    issues: issues.map(({ eventId, type, detail }) => ({ eventId, type, detail })),
  };
}
