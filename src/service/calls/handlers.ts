import type { DescMethod, DescService, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { Call } from './call.ts';
import type { PushedAnswers } from './pushed-answers.ts';

/**
 * The function that implements one method. Messages are plain objects in the shape of their descriptor. A handler
 * throws LedgerError to refuse a call; any other exception is answered with `internal`.
 */
type HandlerOf<M extends DescMethod> = M extends { readonly methodKind: 'unary' }
  ? (request: MessageShape<M['input']>, call: Call) => Promise<MessageInitShape<M['output']>>
  : M extends { readonly methodKind: 'server_streaming' }
    ? (request: MessageShape<M['input']>, call: Call) => StreamedAnswers<MessageInitShape<M['output']>>
    : M extends { readonly methodKind: 'bidi_streaming' }
      ? (requests: AsyncIterable<MessageShape<M['input']>>, call: Call) => AsyncIterable<MessageInitShape<M['output']>>
      : never;

/** A handler of a live stream returns a promise, which rejects where the stream is refused. */
type StreamedAnswers<T> = AsyncIterable<T> | Promise<PushedAnswers<T>>;

/** One handler for each method of a service, by the method's name in camelCase. */
export type HandlersOf<S extends DescService> = {
  readonly [name in keyof S['method']]: HandlerOf<S['method'][name]>;
};
