import type { SharedMemoryBudget } from '../../runtime/limits/memory-budget.ts';
import type { TlsKeys } from '../http/server.ts';
import type { GrpcBounds } from './connections.ts';

export interface GrpcWorkerData {
  readonly host: string;
  readonly port: number;
  readonly tls: TlsKeys | null;
  /** The methods that the main thread serves. */
  readonly methods: readonly GrpcMethod[];
  readonly bounds: GrpcBounds;
  readonly connectionsMax: number;
  readonly memory: SharedMemoryBudget;
  /** The shared memory of a FrameBacklog. */
  readonly backlog: SharedArrayBuffer;
  /** An Int32 that becomes 1 once the worker has closed. The main thread may wait for it while the process exits. */
  readonly closed: SharedArrayBuffer;
}

export interface GrpcMethod {
  /** Names the method in frames. */
  readonly number: number;
  /** `/package.Service/Method` */
  readonly path: string;
  readonly kind: 'unary' | 'server_streaming' | 'bidi_streaming';
  readonly changesState: boolean;
}

/** Messages of the worker beside the frames of calls. */
export type WorkerEvent =
  | { readonly event: 'listening'; readonly host: string; readonly port: number }
  | { readonly event: 'listen_failed'; readonly message: string; readonly code: string | null }
  | { readonly event: 'closed' };

/** Messages to the worker beside the frames of calls. */
export type WorkerCommand =
  | { readonly command: 'set_serving'; readonly serving: boolean }
  | { readonly command: 'close'; readonly graceMs: number };
