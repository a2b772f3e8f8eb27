import type { DescMessage, DescMethod } from '@bufbuild/protobuf';
import type { AnswerOf, RequestOf } from './shapes.ts';

/** One of the parties that an event passed on its way (spec: X-Delivery-Chain). */
export interface DeliveryChainItem {
  readonly actorId: string;
  readonly actorType: 'human' | 'service' | 'external' | 'device';
  readonly role: string;
}

/** What came with an answer. */
export interface AnswerFacts {
  readonly requestId: string | null;
  /** The first answer again, to the same idempotency key. */
  readonly replayed: boolean;
  /** How many times the call was sent. */
  readonly attempts: number;
}

export interface CallOptions {
  /** Aborts the call, which then throws the signal's reason. What was sent may still be carried out. */
  readonly signal?: AbortSignal;
  /**
   * 1 to 255 printable ASCII characters. Made by the client for every state-changing call with a credential if not given;
   * give one of your own to be safe beyond the life of this process.
   */
  readonly idempotencyKey?: string;
  /** All attempts and waits together, in milliseconds. */
  readonly timeoutMs?: number;
  readonly attemptsMax?: number;
  /** 1 to 128 of `[A-Za-z0-9._-]`; comes back with the answer and in the service's log. */
  readonly requestId?: string;
  /** On appendEvent alone: stored in the payload as `delivery_chain`, outside the signature; at most 16 items. */
  readonly deliveryChain?: readonly DeliveryChainItem[];
  /** Called once before the answer is handed out. */
  readonly onAnswer?: (facts: AnswerFacts) => void;
}

type Method<I extends DescMessage, O extends DescMessage> =
  Record<never, never> extends RequestOf<I>
    ? (request?: RequestOf<I>, options?: CallOptions) => Promise<AnswerOf<O>>
    : (request: RequestOf<I>, options?: CallOptions) => Promise<AnswerOf<O>>;

/** The unary methods of a service, typed by its descriptor. What each does, and each of its fields, is in docs/api.md under its name. */
export type UnaryMethods<S extends { readonly method: { readonly [name: string]: DescMethod } }> = {
  readonly [K in keyof S['method'] as S['method'][K]['methodKind'] extends 'unary' ? K : never]: Method<
    S['method'][K]['input'],
    S['method'][K]['output']
  >;
};
