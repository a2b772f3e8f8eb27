/** When a key may sign: events with validFrom <= created_at < revokedAt (ISO times), and no new one from when its end has begun. */
export interface KeyLife {
  readonly validFrom: string;
  readonly revokedAt: string | null;
  /** Its end has begun, and may not be dated yet; false if left out. */
  readonly isEnding?: boolean;
}

/** An actor's keys by kid. `keys` is empty for an actor that never enrolled one. */
export interface ActorKeys {
  readonly keys: ReadonlyMap<string, KeyLife>;
}

/**
 * What a ledger's turn asks of identities: may this key sign now. `fresh` answers from memory what was read from its record
 * at most a second ago, and never that an actor has no keys; undefined means that `read` has to be asked.
 */
export interface SigningKeys {
  fresh(actorId: string): ActorKeys | undefined;
  read(actorId: string): Promise<ActorKeys>;
}
