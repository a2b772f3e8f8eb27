import type { DescMessage, DescService } from '@bufbuild/protobuf';
import type { AnswerOf, RequestOf } from './shapes.ts';

/** One actor through whose hands an event came (X-Delivery-Chain). */
export interface DeliveryChainItem {
  readonly actorId: string;
  readonly actorType: 'human' | 'service' | 'external' | 'device';
  readonly role: string;
}

/** What came with an answer. */
export interface AnswerFacts {
  /** X-Request-Id of the answer. null if there was none. */
  readonly requestId: string | null;
  /** Whether this is the first answer again, for the same idempotency key. */
  readonly replayed: boolean;
  /** How many times the call was sent. */
  readonly attempts: number;
}

/** Options of one call. */
export interface CallOptions {
  /**
   * Aborts the call, which then rejects with the signal's reason. A call that was already sent may still be carried
   * out.
   */
  readonly signal?: AbortSignal;
  /**
   * 1 to 255 printable ASCII characters. If left out, the client makes one for every state-changing call with a
   * credential. Give one of your own if you retry a call after this process has ended.
   */
  readonly idempotencyKey?: string;
  /** Milliseconds for all attempts and waits together. The client's setting if left out. */
  readonly timeoutMs?: number;
  /** How many times the call is sent at most. The client's setting if left out. */
  readonly attemptsMax?: number;
  /** 1 to 128 characters of `[A-Za-z0-9._-]`. The service returns it with the answer and writes it to its log. */
  readonly requestId?: string;
  /**
   * For appendEvent only (TypeError for other methods): at most 16 items. Stored in the payload as `delivery_chain`,
   * which the actor's signature does not cover.
   */
  readonly deliveryChain?: readonly DeliveryChainItem[];
  /** Called once, before the call resolves. */
  readonly onAnswer?: (facts: AnswerFacts) => void;
}

type Method<I extends DescMessage, O extends DescMessage> =
  Record<never, never> extends RequestOf<I>
    ? (request?: RequestOf<I>, options?: CallOptions) => Promise<AnswerOf<O>>
    : (request: RequestOf<I>, options?: CallOptions) => Promise<AnswerOf<O>>;

type MethodsOf<S extends DescService> = {
  readonly [K in keyof S['method'] as S['method'][K]['methodKind'] extends 'unary' ? K : never]: Method<
    S['method'][K]['input'],
    S['method'][K]['output']
  >;
};

/** The unary methods of services, typed by their descriptors. docs/api.md describes each method and each field. */
export type UnaryMethods<S extends readonly DescService[]> = S extends readonly [
  infer First extends DescService,
  ...infer Rest extends readonly DescService[],
]
  ? MethodsOf<First> & UnaryMethods<Rest>
  : unknown;
