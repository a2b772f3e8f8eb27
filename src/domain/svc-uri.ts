import { LedgerError } from './errors.ts';
import { isUuid } from './uuid.ts';

/** Namespaces that are kept for later and answer 501 (spec: Resolver and trust anchor; Errors 1). */
export type ReservedNamespace = 'entity' | 'ledger' | 'tlid';

export type SvcUri =
  | { readonly kind: 'actor'; readonly actorId: string }
  | { readonly kind: 'reserved'; readonly namespace: ReservedNamespace }
  | { readonly kind: 'invalid' };

const SCHEME = 'svc:';
const INVALID: SvcUri = { kind: 'invalid' };

/**
 * Reads `svc:actor:<uuid>`, to the letter. A reserved namespace is told by its name alone: what follows it has no
 * agreed form yet.
 */
export function parseSvcUri(text: string): SvcUri {
  if (!text.startsWith(SCHEME)) return INVALID;
  const separator = text.indexOf(':', SCHEME.length);
  if (separator < 0) return INVALID;
  const namespace = text.slice(SCHEME.length, separator);
  const name = text.slice(separator + 1);
  switch (namespace) {
    case 'actor':
      return isUuid(name) ? { kind: 'actor', actorId: name } : INVALID;
    case 'entity':
    case 'ledger':
    case 'tlid':
      return { kind: 'reserved', namespace };
    default:
      return INVALID;
  }
}

/** The URI of an actor (spec: Actor). */
export function actorUri(actorId: string): string {
  return `svc:actor:${actorId}`;
}

/** `namespace_reserved`: the answer of the resolver to `svc:entity:`, `svc:ledger:` and `svc:tlid:`. */
export function namespaceReserved(namespace: ReservedNamespace): LedgerError {
  return new LedgerError(
    'namespace_reserved',
    `The namespace svc:${namespace}: is reserved and cannot be resolved yet.`,
    {
      namespace,
    },
  );
}
