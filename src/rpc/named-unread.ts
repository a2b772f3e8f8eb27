import { isUuid } from '../domain/uuid.ts';
import { MasterService } from '../gen/svc/v1/masters_pb.ts';
import { OrganizationService } from '../gen/svc/v1/organizations_pb.ts';
import type { Endpoint } from './endpoint.ts';
import type { RestEquivalent } from './exchange.ts';

const noLedger: ReadonlySet<string> = new Set();

/**
 * What a call names whose handler did not come to say so: it was refused before its request was read, or got a stored answer. The
 * ledger stands in the path or query of its REST request, if anywhere; a master or organization in the path stands for itself,
 * under no ledger (an empty set). null: nothing is named.
 */
export function namedUnread(endpoint: Endpoint, { path, query }: RestEquivalent): ReadonlySet<string> | null {
  const { route, method } = endpoint;
  if (route === null) return null;
  if (endpoint.ledgerField !== null) {
    const ledgerId = inPath(route.template, path, 'ledger_id') ?? new URLSearchParams(query).get('ledger_id') ?? '';
    return isUuid(ledgerId) ? new Set([ledgerId]) : null;
  }
  const isOwn = method.parent === MasterService || method.parent === OrganizationService;
  const [first] = route.pathParams;
  return isOwn && first !== undefined && isUuid(inPath(route.template, path, first) ?? '') ? noLedger : null;
}

function inPath(template: string, path: string, param: string): string | null {
  const place = template.split('/').indexOf(`{${param}}`);
  return place < 0 ? null : (path.split('/')[place] ?? null);
}
