import type { Socket } from 'node:net';
import { openInternalListener, type Readiness } from '../../rpc/internal-listener.ts';
import type { Listener } from '../../rpc/listening.ts';
import { implausibleClock } from '../../runtime/clock/plausible-clock.ts';
import type { Authority } from '../../service/authority/authority.ts';
import { untrusted } from '../../service/authority/authority-watch.ts';
import { listen } from '../listeners.ts';
import type { NodeContext } from './context.ts';

const diskFailed = 'a write to the disk failed: nothing can be written, and the node stops';

/** Tells whether the node is ready, and stays open until everything else is closed. */
export class InternalPort implements AsyncDisposable {
  phase: 'starting' | 'serving' | 'stopping' = 'starting';
  readonly #node: NodeContext;
  #listener: Listener | null = null;

  constructor(node: NodeContext) {
    this.#node = node;
  }

  async open(authority: Authority): Promise<Listener> {
    const { config, metrics, membership } = this.#node;
    const parts = {
      metrics,
      readiness: async () => this.#readiness(authority),
      ...(membership === undefined
        ? {}
        : {
            pages: membership.pages,
            takeConnection: (socket: Socket, proved: () => void) => membership.takeConnection(socket, proved),
          }),
    };
    const { opsHost: host, opsPort: port } = config;
    this.#listener = await listen(
      { portVariable: 'OPS_PORT', port, hostVariable: 'OPS_HOST', host },
      openInternalListener(parts, host, port),
    );
    return this.#listener;
  }

  #readiness(authority: Authority): Readiness | Promise<Readiness> {
    const { machine, membership, isClockGood, isStoreWritable } = this.#node;
    const notReady = (reason: string) => ({ ready: false, reason });
    if (this.phase === 'stopping') return notReady('stopping');
    if (this.phase === 'starting') return notReady('starting: not all ports are open yet');
    const reason = untrusted(authority);
    if (reason !== null) return notReady(reason);
    if (!isClockGood()) return notReady(implausibleClock(machine.now()));
    if (membership === undefined && !isStoreWritable()) return notReady(diskFailed);
    return membership?.readiness() ?? { ready: true };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listener?.close(0);
  }
}
