import type { Event } from '../event.ts';

/** Events at the end of a list. */
export interface Tail {
  readonly count: number;
  /** Id of the first one. Empty if there is none. */
  readonly eventId: string;
}

/** The tail of a list, by what ends it: an event that it does not belong to begins it anew. */
export class TailCount {
  #count = 0;
  #eventId = '';

  add(event: Event): void {
    if (this.#count === 0) this.#eventId = event.id;
    this.#count += 1;
  }

  beginAnew(): void {
    this.#count = 0;
    this.#eventId = '';
  }

  get tail(): Tail {
    return { count: this.#count, eventId: this.#eventId };
  }
}
