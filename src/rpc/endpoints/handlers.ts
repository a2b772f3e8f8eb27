import type { DescMethod, DescService, Message, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { Naming } from '../../service/audit/ledger-naming.ts';
import type { Call } from '../../service/call.ts';

/**
 * What implements one method. Messages are plain objects in the shape of their descriptor; a handler knows nothing of
 * HTTP or gRPC. Refusals are thrown as LedgerError; anything else that is thrown leaves as `internal`.
 */
export type HandlerOf<M extends DescMethod> = M extends { readonly methodKind: 'unary' }
  ? (request: MessageShape<M['input']>, call: Call) => Promise<MessageInitShape<M['output']>>
  : M extends { readonly methodKind: 'server_streaming' }
    ? (request: MessageShape<M['input']>, call: Call) => AsyncIterable<MessageInitShape<M['output']>>
    : M extends { readonly methodKind: 'bidi_streaming' }
      ? (requests: AsyncIterable<MessageShape<M['input']>>, call: Call) => AsyncIterable<MessageInitShape<M['output']>>
      : never;

/** One handler for each method of a service, by the method's name in camelCase. */
export type HandlersOf<S extends DescService> = {
  readonly [name in keyof S['method']]: HandlerOf<S['method'][name]>;
};

/** A handler without its types, as the transports hold it. */
export type UnaryHandler = (request: Message, call: Call) => Promise<object>;
export type ServerStreamHandler = (request: Message, call: Call) => AsyncIterable<object>;
export type BidiStreamHandler = (requests: AsyncIterable<Message>, call: Call) => AsyncIterable<object>;
export type AnyHandler = UnaryHandler | ServerStreamHandler | BidiStreamHandler;

/** What methods of a service name otherwise than by a `ledger_id` of their request. */
export type NamesOf<S extends DescService> = {
  readonly [name in keyof S['method']]?: Naming<MessageShape<S['method'][name]['input']>>;
};

/** A service with its handlers. A list of these is the whole API. */
export interface Implementation {
  readonly service: DescService;
  readonly handlers: ReadonlyMap<string, AnyHandler>;
  readonly names: ReadonlyMap<string, Naming<Message>>;
}

/**
 * Joins a service and its handlers. Every method must have one; the types see to it, and the map is checked as well.
 */
export function implement<S extends DescService>(
  service: S,
  handlers: HandlersOf<S>,
  names: NamesOf<S> = {},
): Implementation {
  const entries = service.methods.map((method): [string, AnyHandler] => {
    const handler = handlers[method.localName as keyof HandlersOf<S>];
    if (typeof handler !== 'function') throw new TypeError(`${service.typeName}.${method.name} has no handler`);
    // The types above hold for each method; here they are put aside, once.
    return [method.localName, handler as unknown as AnyHandler];
  });
  // And so for each that names something.
  const namings = Object.entries(names) as unknown as [string, Naming<Message>][];
  return { service, handlers: new Map(entries), names: new Map(namings) };
}
