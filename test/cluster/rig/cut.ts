import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** `open`: bytes pass. `refused`: connections are reset. `silent`: nothing passes, as with dropped packets. */
export type CutMode = 'open' | 'refused' | 'silent';

/** A proxy whose connections can be cut. */
export interface Cut extends AsyncDisposable {
  readonly port: number;
  readonly mode: CutMode;
  /** Bytes that wait while the cut is `silent` arrive late, when it is `open` again. */
  set(mode: CutMode): void;
}

/** Listens on the loopback and forwards bytes to `target`. */
export async function openCut(target: { readonly host: string; readonly port: number }, port: number): Promise<Cut> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let mode: CutMode = 'open';
  const server = createServer({ noDelay: true }, (near) => {
    if (mode === 'refused') {
      near.on('error', () => {}).resetAndDestroy();
      return;
    }
    const far = connect({ ...target, noDelay: true });
    const pair = [near, far] as const;
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end);
    if (mode === 'open') join(pair);
    else for (const socket of pair) socket.pause();
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    port,
    get mode() {
      return mode;
    },
    set(next) {
      if (next === mode) return;
      mode = next;
      for (const pair of [...pairs]) {
        if (next === 'open') join(pair);
        else if (next === 'silent') part(pair);
        else for (const socket of pair) socket.resetAndDestroy();
      }
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const pair of pairs) for (const socket of pair) socket.destroy();
      await closed;
    },
  };
}

function join([near, far]: readonly [Socket, Socket]): void {
  near.pipe(far);
  far.pipe(near);
}

function part([near, far]: readonly [Socket, Socket]): void {
  near.unpipe(far).pause();
  far.unpipe(near).pause();
}
