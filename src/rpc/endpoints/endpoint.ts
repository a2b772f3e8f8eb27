import { type DescField, type DescMessage, type DescMethod, getOption, type Message } from '@bufbuild/protobuf';
import { MasterService } from '../../gen/svc/v1/masters_pb.ts';
import { json, type MethodRule } from '../../gen/svc/v1/options_pb.ts';
import type { Naming } from '../../service/audit/ledger-naming.ts';
import type { AnyHandler, Implementation } from './handlers.ts';
import { methodRule, type RestRoute, restRoutes } from './routes.ts';

/** One method as all transports see it: its rule, its REST route, its handler. Made once at start. */
export interface Endpoint {
  readonly method: DescMethod;
  /** `/svc.v1.Service/Method` */
  readonly rpcPath: string;
  readonly rule: MethodRule;
  /** Its first REST route; null for a method that has none (gRPC only). */
  readonly route: RestRoute | null;
  /** True for every HTTP method but GET. */
  readonly changesState: boolean;
  /** Appends have their own rate limit. */
  readonly isAppend: boolean;
  readonly rawFields: readonly DescField[];
  readonly ledgerField: DescField | null;
  /** Whether its answer has a field that is a secret, such as an API key. Such an answer is never compressed. */
  readonly hasSecret: boolean;
  /** Finds the ledger of a method without `ledger_id`; null if the method has no such rule. */
  readonly names: Naming<Message> | null;
  readonly handler: AnyHandler;
}

/** Returns all endpoints of an API by `/svc.v1.Service/Method`. Throws TypeError for a method without a handler. */
export function endpointsOf(api: readonly Implementation[]): ReadonlyMap<string, Endpoint> {
  const endpoints = new Map<string, Endpoint>();
  for (const { service, handlers, names } of api) {
    for (const method of service.methods) {
      const handler = handlers[method.localName];
      if (handler === undefined) throw new TypeError(`${rpcPathOf(method)} has no handler`);
      endpoints.set(rpcPathOf(method), endpointOf(method, handler, names[method.localName] ?? null));
    }
  }
  return endpoints;
}

export function rpcPathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** `seen`: messages that were looked at already, as a message may contain its own type. */
function holdsSecret(desc: DescMessage, seen = new Set<DescMessage>()): boolean {
  if (seen.has(desc)) return false;
  seen.add(desc);
  return desc.fields.some(
    (field) => getOption(field, json).secret || (field.message && holdsSecret(field.message, seen)),
  );
}

const appendEventPath = rpcPathOf(MasterService.method.appendEvent);
const appendEventsPath = rpcPathOf(MasterService.method.appendEvents);

function endpointOf(method: DescMethod, handler: AnyHandler, names: Naming<Message> | null): Endpoint {
  const rpcPath = rpcPathOf(method);
  const route = restRoutes().find((candidate) => !candidate.alias && rpcPathOf(candidate.method) === rpcPath) ?? null;
  return Object.freeze({
    method,
    rpcPath,
    rule: methodRule(method),
    route,
    changesState: route === null || route.httpMethod !== 'GET',
    isAppend: rpcPath === appendEventPath || rpcPath === appendEventsPath,
    ledgerField: method.input.fields.find((field) => field.name === 'ledger_id') ?? null,
    rawFields: method.input.fields.filter((field) => getOption(field, json).raw),
    hasSecret: holdsSecret(method.output),
    names,
    handler,
  });
}
