import { LedgerError, notFound } from '../../domain/errors.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import type { LedgerFacts } from '../../domain/event/facts.ts';
import { wrongHash } from '../../domain/event/integrity.ts';
import { mayRead } from '../../domain/ledger/permission.ts';
import { checkUuid } from '../../domain/values/fields.ts';
import type { ProofService } from '../../gen/svc/v1/proofs_pb.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import type { HandlersOf } from '../calls/handlers.ts';
import { eventAt, eventWithId } from '../reading/event-lookup.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import { boundedLedgers } from '../walking/bounded-stores.ts';
import { LogProofs } from './log-proofs.ts';
import { brokenRow, isBrokenRow } from './log-rows.ts';
import { checkNamedEvent, checkSize, checkSizes, type NamedEvent } from './proof-request.ts';
import type { ProvenLogs } from './proven-logs.ts';

type ProofCall = Pick<Call, 'caller' | 'walk'>;

/**
 * Methods for checkpoints and proofs. A delegate of single masters is a partial reader of their ledger. The size of the
 * ledger counts events that a partial reader may not see, so no answer to one depends on it.
 */
export function proofService(store: LedgerStore, reading: LedgerReading, logs: ProvenLogs) {
  const ledgerProofs = (ledgerId: string, call: ProofCall) =>
    new LogProofs(logs, { kind: 'ledger', id: ledgerId, ledgerId }, call.walk);

  /** Proofs of a whole ledger, for a caller who may read all of it. */
  const ofLedger = async (ledgerId: string, call: ProofCall): Promise<LogProofs> => {
    await reading.wholeLedger(call.walk, ledgerId, callerOf(call).actorId);
    return ledgerProofs(ledgerId, call);
  };

  /** Makes an answer about a master for a caller who may read it. */
  const ofMaster = async <Answer>(
    masterId: string,
    call: ProofCall,
    answer: (proofs: LogProofs, ledger: LedgerFacts) => Promise<Answer>,
  ): Promise<Answer> => {
    const { actorId } = callerOf(call);
    const { ledger } = await reading.readableMaster(masterId, actorId);
    const proofs = new LogProofs(logs, { kind: 'master', id: masterId, ledgerId: ledger.ledgerId }, call.walk);
    const isPartial = async () => !mayRead(await reading.ledgerAccess(ledger, actorId));
    return withoutBrokenSeq(isPartial, () => answer(proofs, ledger));
  };

  /** null: there is no such event, or none that can be read. */
  const findInLedger = (ledgerId: string, event: NamedEvent, call: ProofCall): Promise<LedgerEvent | null> => {
    const ledgers = boundedLedgers(call.walk, store);
    return 'index' in event ? eventAt(ledgers, ledgerId, event.index) : eventWithId(ledgers, ledgerId, event.eventId);
  };

  const inclusionForFullReader = async (ledgerId: string, event: NamedEvent, size: number | null, call: ProofCall) => {
    const proofs = ledgerProofs(ledgerId, call);
    if ('index' in event) {
      const proof = await proofs.inclusion('seq', event.index, size);
      return { ...proof, prevHash: prevHashOf(await findInLedger(ledgerId, event, call), ledgerId, event.index) };
    }
    const found = await findInLedger(ledgerId, event, call);
    if (found === null) throw notFound('event');
    const proof = await proofs.inclusion('event_id', found.seq, size);
    return { ...proof, prevHash: prevHashOf(found, ledgerId, found.seq) };
  };

  /** The order of these checks keeps the ledger's size from the caller. */
  const inclusionForPartialReader = async (
    ledgerId: string,
    event: NamedEvent,
    size: number | null,
    call: ProofCall,
  ) => {
    if (size === null || ('index' in event && size !== event.index + 1)) throw notOwnPlace();
    const found = await findInLedger(ledgerId, event, call);
    const { actorId } = callerOf(call);
    if (found === null) throw notFound('event');
    // A reader of a part of the ledger may read the ledger's own events.
    const masterId = found.master?.id ?? null;
    const masters = boundedLedgers(call.walk, store);
    if (masterId !== null && !(await reading.mayReadEvent(actorId, ledgerId, masterId, masters)))
      throw notFound('event');
    if (size !== found.seq + 1) throw notOwnPlace();
    return withoutBrokenSeq(
      async () => true,
      async () => {
        const proof = await ledgerProofs(ledgerId, call).inclusionAtOwnPlace(found.seq);
        // An event that is not certain yet is not there yet.
        if (proof === null) throw notFound('event');
        return { ...proof, prevHash: prevHashOf(found, ledgerId, found.seq) };
      },
    );
  };

  return {
    getLedgerCheckpoint: async (request, call: ProofCall) => {
      const ledgerId = checkUuid('ledger_id', request.ledgerId);
      const size = checkSize('size', request.size);
      return (await ofLedger(ledgerId, call)).checkpoint(size);
    },

    getLedgerInclusion: async (request, call: ProofCall) => {
      const ledgerId = checkUuid('ledger_id', request.ledgerId);
      const event = checkNamedEvent('seq', { index: request.seq, eventId: request.eventId });
      const size = checkSize('size', request.size);
      const { masters } = await reading.visibleLedger(call.walk, ledgerId, callerOf(call).actorId);
      return masters === null
        ? inclusionForFullReader(ledgerId, event, size, call)
        : inclusionForPartialReader(ledgerId, event, size, call);
    },

    getLedgerConsistency: async (request, call: ProofCall) => {
      const ledgerId = checkUuid('ledger_id', request.ledgerId);
      const { from, to } = checkSizes(request);
      return (await ofLedger(ledgerId, call)).consistency(from, to);
    },

    getMasterCheckpoint: async (request, call: ProofCall) => {
      const masterId = checkUuid('uuid', request.uuid);
      const size = checkSize('size', request.size);
      return ofMaster(masterId, call, (proofs) => proofs.checkpoint(size));
    },

    getMasterInclusion: async (request, call: ProofCall) => {
      const masterId = checkUuid('uuid', request.uuid);
      const event = checkNamedEvent('master_seq', { index: request.masterSeq, eventId: request.eventId });
      const size = checkSize('size', request.size);
      return ofMaster(masterId, call, async (proofs, { ledgerId }) => {
        if ('index' in event) return proofs.inclusion('master_seq', event.index, size);
        const link = (await findInLedger(ledgerId, event, call))?.master;
        if (link?.id !== masterId) throw notFound('event');
        return proofs.inclusion('event_id', link.seq, size);
      });
    },

    getMasterConsistency: async (request, call: ProofCall) => {
      const masterId = checkUuid('uuid', request.uuid);
      const { from, to } = checkSizes(request);
      return ofMaster(masterId, call, (proofs) => proofs.consistency(from, to));
    },
  } satisfies Partial<HandlersOf<typeof ProofService>>;
}

/** Throws `unavailable` if the event is not stored as it was written: its `prev_hash` may be wrong then. */
function prevHashOf(event: LedgerEvent | null, ledgerId: string, seq: number): string {
  if (event === null || wrongHash(event) !== null) throw brokenRow(ledgerId, seq);
  return event.prevHash;
}

function notOwnPlace(): LedgerError {
  return new LedgerError(
    'permission_denied',
    "Your grant is for masters of this ledger: name one event, and give as size the event's seq + 1.",
    { field: 'size', expected: "the event's seq + 1" },
  );
}

/** Makes an answer. A partial reader is not told which event is not stored as it was written. */
async function withoutBrokenSeq<Answer>(
  isPartial: () => Promise<boolean>,
  answer: () => Promise<Answer>,
): Promise<Answer> {
  try {
    return await answer();
  } catch (error) {
    if (!isBrokenRow(error) || !(await isPartial())) throw error;
    throw new LedgerError('unavailable', error.message, { reason: 'broken_row' }, error);
  }
}
