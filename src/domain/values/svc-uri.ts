import { LedgerError } from '../errors.ts';
import { isUuid, uuidForm } from './uuid-form.ts';

/** Namespaces that are reserved for later. The resolver answers them with 501. */
type ReservedNamespace = 'entity' | 'ledger' | 'tlid';

type SvcUri =
  | { readonly kind: 'actor'; readonly actorId: string }
  | { readonly kind: 'reserved'; readonly namespace: ReservedNamespace }
  | { readonly kind: 'invalid' };

const UUID = uuidForm.source.slice(1, -1);
export const actorUriForm = new RegExp(`^svc:actor:${UUID}$`);
/** What the resolver understands: actors, and names in the reserved namespaces. */
export const resolvableUriForm = new RegExp(`^svc:(?:actor:${UUID}|(?:entity|ledger|tlid):.*)$`);
const SCHEME = 'svc:';
const INVALID: SvcUri = { kind: 'invalid' };

/** Parses `svc:actor:<uuid>`, in exactly this spelling. Names in reserved namespaces have no agreed form yet. */
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

export function actorUri(actorId: string): string {
  return `svc:actor:${actorId}`;
}

export function namespaceReserved(namespace: ReservedNamespace): LedgerError {
  const message = `The namespace svc:${namespace}: is reserved and cannot be resolved yet.`;
  return new LedgerError('namespace_reserved', message, { namespace });
}
