import type { MessageInitShape } from '@bufbuild/protobuf';
import type { CommandOutcome } from '../../src/actors/inbox/outcome.ts';
import { somethingWrong } from '../../src/actors/inbox/refusals.ts';
import { NotOwner, PeerUnreachable } from '../../src/actors/routing/peers.ts';
import { type ErrorDetails, errorCodeOf, isRetryable, LedgerError } from '../../src/domain/errors.ts';
import { formatRow, parseRow } from '../../src/domain/event/row.ts';
import type { Answer, AnswerSchema, Refusal } from '../../src/gen/svc/cluster/v1/peers_pb.ts';
import { inUnits } from '../../src/runtime/limits/memory-budget.ts';
import { UnreadableCommand } from './wire-fields.ts';

type AnswerInit = MessageInitShape<typeof AnswerSchema>;

/** Returns the answer for a command with an outcome. `id`: the number of the ask. */
export function outcomeAnswer(id: number, { event, replayed }: CommandOutcome): AnswerInit {
  return { id, result: { case: 'outcome', value: { row: formatRow(event), replayed } } };
}

/** Returns the answer for a command that failed with `error`. The causes of the error are not sent. */
export function errorAnswer(id: number, error: unknown): AnswerInit {
  // The sender can read its own command, so NOT_OWNER makes the sender run it.
  if (error instanceof UnreadableCommand) return { id, result: { case: 'notOwner', value: { owner: '' } } };
  if (error instanceof NotOwner) return { id, result: { case: 'notOwner', value: { owner: error.owner ?? '' } } };
  const { code, message, details } = error instanceof LedgerError ? error : somethingWrong(error);
  return { id, result: { case: 'refusal', value: { code, message, details: JSON.stringify(details) } } };
}

/**
 * Returns the outcome in an answer. Throws the LedgerError or NotOwner that the answer holds instead, and
 * PeerUnreachable if this node cannot read the answer.
 */
export function outcomeIn({ result }: Answer): CommandOutcome {
  switch (result.case) {
    case 'outcome':
      try {
        return { event: parseRow(result.value.row), replayed: result.value.replayed };
      } catch (error) {
        // Perhaps a row of another version: the command was written as an unknown event.
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
 * Whether an answer shows that its node gets commands done: an outcome or a final refusal. Other answers show nothing:
 * a node without a store, or one that does not run the shard, can give them for ever.
 */
export function showsWork({ result }: Answer): boolean {
  if (result.case === 'refusal') return !isRetryable(refusalIn(result.value));
  return result.case === 'outcome';
}

function refusalIn({ code, message, details }: Refusal): LedgerError {
  return new LedgerError(errorCodeOf(code), message, detailsOf(details));
}

function detailsOf(json: string): ErrorDetails {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

/** Bytes counted for an answer beside its row, and for a command beside its text. */
const overheadBytes = 64;

/** Returns the bytes that are counted for an answer. */
export function sizeOf({ result }: AnswerInit): number {
  if (result?.case === 'outcome') return heldBytes(result.value.row?.length ?? 0);
  const refusal = result?.case === 'refusal' ? result.value : {};
  return heldBytes((refusal.message?.length ?? 0) + (refusal.details?.length ?? 0));
}

/** In whole units of the budget: a batch of answers, and what a stream still holds at its end, is released as a sum. */
export function heldBytes(textLength: number): number {
  return inUnits(textLength + overheadBytes);
}
