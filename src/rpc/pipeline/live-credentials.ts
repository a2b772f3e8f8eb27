import type { LedgerError } from '../../domain/errors.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Caller } from '../../service/calls/call.ts';
import type { Credentials } from '../../service/developers/credentials.ts';
import type { IncomingCall } from '../call/incoming-call.ts';
import { CredentialCheck } from './credential-check.ts';

interface Holder {
  readonly streams: Set<IncomingCall>;
  readonly check: CredentialCheck;
}

/**
 * The credentials of live streams. Each is checked at intervals, once for all streams that came with it. When one is no
 * longer valid, its streams end with the error. An API key that is revoked on this node ends its streams at once.
 */
export class LiveCredentials {
  readonly #credentials: Credentials;
  /** By API key, or by the actor of identity headers. */
  readonly #holders = new Map<string, Holder>();
  #timer: NodeJS.Timeout | null = null;

  constructor(credentials: Credentials) {
    this.#credentials = credentials;
    credentials.onRevoked((apiKeyId, error) => endAll(this.#holders.get(apiKeyId), error));
  }

  /** Checks the credential of a stream that runs, until `unwatch`. */
  watch(stream: IncomingCall): void {
    const key = holderOf(stream);
    if (key === null) return;
    const holder = this.#holders.get(key) ?? { streams: new Set(), check: new CredentialCheck(this.#credentials) };
    holder.streams.add(stream);
    this.#holders.set(key, holder);
    this.#timer ??= setInterval(() => this.#checkAll(), limits.streamCredentialCheckMs).unref();
  }

  unwatch(stream: IncomingCall): void {
    const key = holderOf(stream);
    if (key === null) return;
    const holder = this.#holders.get(key);
    holder?.streams.delete(stream);
    if (holder?.streams.size === 0) this.#holders.delete(key);
    if (this.#holders.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #checkAll(): void {
    for (const holder of this.#holders.values()) void check(holder);
  }
}

/** All streams of a holder have the same credential. It is read from one that still runs. */
async function check(holder: Holder): Promise<void> {
  const [stream] = holder.streams;
  if (!stream?.call) return;
  const error = await holder.check.run(stream.call.endpoint.rule, stream);
  if (error !== null) endAll(holder, error);
}

function holderOf({ call }: IncomingCall): string | null {
  const caller: Caller | null = call?.caller ?? null;
  return caller === null ? null : (caller.apiKeyId ?? caller.actorId);
}

function endAll(holder: Holder | undefined, error: LedgerError): void {
  for (const { call } of holder?.streams ?? []) call?.endWith(error);
}
