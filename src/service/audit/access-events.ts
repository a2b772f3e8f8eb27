import { uuidV7 } from '../../domain/values/uuid.ts';
import type { AccessEvent } from '../../store/access-log.ts';
import type { AccessRecord } from './access-record.ts';

/** Ids that one millisecond can hold. */
const idsPerMs = 4096;
const idRandomBytes = 8;

/** Makes access events of records. Their ids ascend in the order of the answers, even if the clock goes back. */
export class AccessEvents {
  readonly #random: (lengthBytes: number) => Uint8Array;
  #lastMs = 0;
  #idsInMs = 0;

  constructor(random: (lengthBytes: number) => Uint8Array) {
    this.#random = random;
  }

  of(records: readonly AccessRecord[]): AccessEvent[] {
    const random = this.#random(records.length * idRandomBytes);
    return records.map((record, place) => {
      const bytes = random.subarray(place * idRandomBytes, (place + 1) * idRandomBytes);
      // Fields are copied one by one: this runs for every call, and a spread costs three times as much.
      return {
        id: this.#nextId(record.at, bytes),
        actorId: record.actorId,
        apiKeyId: record.apiKeyId,
        ledgerId: record.ledgerId,
        method: record.method,
        path: record.path,
        responseStatus: record.responseStatus,
        requestId: record.requestId,
      };
    });
  }

  #nextId(atMs: number, random: Uint8Array): string {
    if (atMs > this.#lastMs) {
      this.#lastMs = atMs;
      this.#idsInMs = 0;
    } else if (this.#idsInMs === idsPerMs) {
      this.#lastMs += 1;
      this.#idsInMs = 0;
    }
    const place = this.#idsInMs++;
    const bytes = new Uint8Array(2 + idRandomBytes);
    bytes[0] = place >> 8;
    bytes[1] = place & 0xff;
    bytes.set(random, 2);
    return uuidV7(this.#lastMs, bytes);
  }
}
