import type { DescService, Message, MessageShape } from '@bufbuild/protobuf';
import type { Naming } from '../../service/audit/ledger-naming.ts';
import type { Call } from '../../service/calls/call.ts';
import type { HandlersOf } from '../../service/calls/handlers.ts';
import type { PushedAnswers } from '../../service/calls/pushed-answers.ts';

/** Handlers without their types, as the transports hold them. */
export type UnaryHandler = (request: Message, call: Call) => Promise<object>;
export type ServerStreamHandler = (request: Message, call: Call) => AsyncIterable<object>;
/** Of a method whose rule says that it is live. */
export type LiveStreamHandler = (request: Message, call: Call) => Promise<PushedAnswers<object>>;
export type BidiStreamHandler = (requests: AsyncIterable<Message>, call: Call) => AsyncIterable<object>;
export type AnyHandler = UnaryHandler | ServerStreamHandler | LiveStreamHandler | BidiStreamHandler;

/** How to find the ledger that a call names, for methods of whose requests no field says it (named-ledgers.ts). */
type NamesOf<S extends DescService> = {
  readonly [name in keyof S['method']]?: Naming<MessageShape<S['method'][name]['input']>>;
};

/** A service with its handlers, by method name in camelCase. A list of these is the whole API. */
export interface Implementation {
  readonly service: DescService;
  readonly handlers: Readonly<Record<string, AnyHandler>>;
  readonly names: Readonly<Record<string, Naming<Message>>>;
}

/** Joins a service and its handlers, whose types are checked here and erased. */
export function implement<S extends DescService>(
  service: S,
  handlers: HandlersOf<S>,
  names: NamesOf<S> = {},
): Implementation {
  return { service, handlers, names } as unknown as Implementation;
}
