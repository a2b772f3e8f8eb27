import { LedgerError } from '../../domain/errors.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Caller } from '../../service/calls/call.ts';
import type { Credentials } from '../../service/developers/credentials.ts';
import type { IncomingCall } from '../call/incoming-call.ts';
import type { RunningCall } from '../call/running-call.ts';
import { identify } from './caller.ts';

interface Holder {
  readonly calls: Set<RunningCall>;
  check(): Promise<unknown>;
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
  #isChecking = false;

  constructor(credentials: Credentials) {
    this.#credentials = credentials;
    credentials.onRevoked((apiKeyId, error) => endAll(this.#holders.get(apiKeyId), error));
  }

  /** Checks the credential of the call until `unwatch`. */
  watch(call: RunningCall, incoming: IncomingCall): void {
    if (call.caller === null) return;
    const key = holderOf(call.caller);
    const holder = this.#holders.get(key) ?? this.#newHolder(call, incoming);
    holder.calls.add(call);
    this.#holders.set(key, holder);
    this.#timer ??= setInterval(() => void this.#checkAll(), limits.streamCredentialCheckMs).unref();
  }

  #newHolder({ endpoint }: RunningCall, incoming: IncomingCall): Holder {
    return { calls: new Set(), check: async () => identify(this.#credentials, endpoint.rule, incoming) };
  }

  unwatch(call: RunningCall): void {
    if (call.caller === null) return;
    const key = holderOf(call.caller);
    const holder = this.#holders.get(key);
    holder?.calls.delete(call);
    if (holder?.calls.size === 0) this.#holders.delete(key);
    if (this.#holders.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  async #checkAll(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    await Promise.all(Array.from(this.#holders.values(), (holder) => this.#check(holder)));
    this.#isChecking = false;
  }

  async #check(holder: Holder): Promise<void> {
    try {
      await holder.check();
    } catch (thrown) {
      // If the store does not answer, the streams go on: they could read nothing new from it.
      if (!(thrown instanceof LedgerError) || thrown.code === 'unavailable') return;
      endAll(holder, thrown);
    }
  }
}

function holderOf({ apiKeyId, actorId }: Caller): string {
  return apiKeyId ?? actorId;
}

function endAll(holder: Holder | undefined, error: LedgerError): void {
  for (const call of holder?.calls ?? []) call.endWith(error);
}
