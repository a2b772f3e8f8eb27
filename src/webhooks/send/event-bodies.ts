import type { LedgerEvent } from '../../domain/event/event.ts';
import { checkChain } from '../../domain/event/integrity.ts';
import { CorruptRow, parseRow } from '../../domain/event/row.ts';
import { CountedRecentMap } from '../../runtime/limits/counted-recent-map.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import { queueBounds } from '../../runtime/limits/queue-bounds.ts';
import type { DeliveryRecord } from '../../service/webhooks/delivery-record.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { eventBody } from './delivery-body.ts';

interface ReadyBody {
  /** null: an event of the ledger itself. */
  readonly masterId: string | null;
  readonly bytes: Buffer;
}

/** What a kept body takes beside its bytes, measured. */
const keptEntryBytes = 512;

/** Bodies made from the log. Deliveries that were recorded together have the same one, at about the same time. */
export class EventBodies {
  readonly #ledgers: LedgerStore;
  readonly #kept: CountedRecentMap<string, ReadyBody>;

  constructor(ledgers: LedgerStore, memory: MemoryBudget) {
    this.#ledgers = ledgers;
    this.#kept = new CountedRecentMap(memory, queueBounds(memory.maxBytes).eventBodiesMaxBytes);
  }

  /** null: the stored event is missing or damaged, and must not be sent. */
  async of(delivery: DeliveryRecord, place: NonNullable<DeliveryRecord['place']>): Promise<ReadyBody | null> {
    const key = `${delivery.eventId}|${delivery.createdAt}`;
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    const [entry] = await this.#ledgers.read(place.ledgerId, place.seq, 1);
    const event = entry?.seq === place.seq ? soundEvent(entry.row) : null;
    if (event?.id !== delivery.eventId) return null;
    const made = { masterId: event.master?.id ?? null, bytes: eventBody(event, delivery.createdAt) };
    this.#kept.set(key, made, made.bytes.length + keptEntryBytes);
    return made;
  }
}

function soundEvent(row: string): LedgerEvent | null {
  try {
    const event = parseRow(row);
    return checkChain([event], { kind: 'segment' }).length === 0 ? event : null;
  } catch (error) {
    if (error instanceof CorruptRow) return null;
    throw error;
  }
}
