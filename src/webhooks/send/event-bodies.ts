import type { LedgerEvent } from '../../domain/event/event.ts';
import { checkChain } from '../../domain/event/integrity.ts';
import { CorruptRow, parseRow } from '../../domain/event/row.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import type { DeliveryRecord } from '../../service/webhooks/delivery-record.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { eventBody } from './delivery-body.ts';

interface ReadyBody {
  /** null: an event of the ledger itself. */
  readonly masterId: string | null;
  readonly bytes: Buffer;
}

const keptMaxBytes = 8 * 1024 * 1024;

/** Bodies made from the log; the memory budget counts them as `queue`. Deliveries that were recorded together have the same one, at about the same time. */
export class EventBodies {
  readonly #ledgers: LedgerStore;
  readonly #memory: MemoryBudget;
  readonly #kept = new Map<string, ReadyBody>();
  #keptBytes = 0;

  constructor(ledgers: LedgerStore, memory: MemoryBudget) {
    this.#ledgers = ledgers;
    this.#memory = memory;
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
    this.#keep(key, made);
    return made;
  }

  #keep(key: string, made: ReadyBody): void {
    if (this.#kept.has(key)) return;
    this.#kept.set(key, made);
    this.#keptBytes += made.bytes.length;
    this.#memory.add('queue', made.bytes.length);
    for (const [oldest, body] of this.#kept) {
      if (this.#keptBytes <= keptMaxBytes) return;
      this.#kept.delete(oldest);
      this.#keptBytes -= body.bytes.length;
      this.#memory.release('queue', body.bytes.length);
    }
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
