/** A key may sign events with validFrom <= created_at < revokedAt (ISO times). */
export interface KeyLife {
  readonly validFrom: string;
  readonly revokedAt: string | null;
  /** Its revocation has begun, and may have no date yet: it may not sign new events. */
  readonly isEnding?: boolean;
}

/** An actor's keys by kid. Empty for an actor that never enrolled one. */
export type ActorKeys = ReadonlyMap<string, KeyLife>;

/**
 * The keys of actors. `fresh` answers from memory, with keys that were read from their record at most a second ago. It
 * never says that an actor has no keys. undefined: `read` has to be called. `withEnds` adds the ends that this node is
 * storing, or has stored since, to keys that either of them returned.
 */
export interface SigningKeys {
  fresh(actorId: string): ActorKeys | undefined;
  read(actorId: string): Promise<ActorKeys>;
  withEnds(actorId: string, keys: ActorKeys): ActorKeys;
}
