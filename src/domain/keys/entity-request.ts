import { canonicalJson } from '../json/canonical.ts';

/** `bodyHash` is the SHA-256 of the raw body, lower-case hex. */
interface RequestFacts {
  readonly method: string;
  readonly path: string;
  readonly bodyHash: string;
  readonly timestamp: string;
}

/** The canonical JSON that an entity signs as ENTITY_REQUEST, for a call that writes no event of its own. */
export function entityRequestForm({ method, path, bodyHash, timestamp }: RequestFacts): string {
  return canonicalJson({ method, path, body_hash: bodyHash, timestamp });
}
