import type { MessageInitShape } from '@bufbuild/protobuf';
import type { CommandOutcome } from '../../src/actors/outcome.ts';
import { NotOwner, PeerUnreachable } from '../../src/actors/peers.ts';
import { isRetryable, somethingWrong } from '../../src/actors/refusals.ts';
import { errorCodeOf, LedgerError } from '../../src/domain/errors.ts';
import { formatRow, parseRow } from '../../src/domain/row.ts';
import type { Answer, AnswerSchema, Refusal } from '../../src/gen/svc/cluster/v1/peers_pb.ts';
import { UnreadableCommand } from './wire-fields.ts';

type AnswerInit = MessageInitShape<typeof AnswerSchema>;

export function outcomeAnswer(id: number, { event, replayed }: CommandOutcome): AnswerInit {
  return { id, result: { case: 'outcome', value: { row: formatRow(event), replayed } } };
}

/** What a command ended with that has no outcome. Causes stay where they are. */
export function errorAnswer(id: number, error: unknown): AnswerInit {
  // Whoever sent it knows what it means, and can carry it out by itself.
  if (error instanceof UnreadableCommand) return { id, result: { case: 'notOwner', value: { owner: '' } } };
  if (error instanceof NotOwner) return { id, result: { case: 'notOwner', value: { owner: error.owner ?? '' } } };
  const { code, message, details } = error instanceof LedgerError ? error : somethingWrong(error);
  return { id, result: { case: 'refusal', value: { code, message, details: JSON.stringify(details) } } };
}

/** The outcome in an answer; throws the LedgerError or NotOwner in it, and PeerUnreachable for an answer that says nothing. */
export function outcomeIn({ result }: Answer): CommandOutcome {
  switch (result.case) {
    case 'outcome':
      try {
        return { event: parseRow(result.value.row), replayed: result.value.replayed };
      } catch (error) {
        // Of another version, perhaps: it was written, and this node cannot say what.
        throw new PeerUnreachable(error);
      }
    case 'refusal':
      throw refusalIn(result.value);
    case 'notOwner':
      throw new NotOwner(result.value.owner === '' ? null : result.value.owner);
    case undefined:
      throw new PeerUnreachable(new Error('an answer of a kind that this node does not know'));
  }
}

/**
 * Whether an answer shows that its node gets commands carried out: an outcome, or a refusal that holds. A node that has no store, or runs
 * no such shard, can say so for ever.
 */
export function showsWork({ result }: Answer): boolean {
  if (result.case === 'refusal') return !isRetryable(refusalIn(result.value));
  return result.case === 'outcome';
}

function refusalIn({ code, message, details }: Refusal): LedgerError {
  return new LedgerError(errorCodeOf(code), message, detailsOf(details));
}

function detailsOf(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
