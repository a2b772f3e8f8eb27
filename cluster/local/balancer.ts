import { connect, createServer, type Server, type Socket } from 'node:net';
import { isReady } from './ports.ts';

/** A node behind the balancer: its host, its two public ports, and the internal port that reports readiness. */
export interface BalancedNode {
  readonly host: string;
  readonly port: number;
  readonly grpcPort: number;
  readonly internalPort: number;
}

export interface BalancerOptions {
  readonly host: string;
  /** `port` and `grpcPort`: 0 means any free port. */
  readonly port: number;
  readonly grpcPort: number;
}

/** A load balancer: one address for several nodes. */
export interface Balancer extends AsyncDisposable {
  readonly port: number;
  readonly grpcPort: number;
  /** New connections may go to this node too from now on. */
  add(node: BalancedNode): void;
}

const lookEveryMs = 500;
const connectMaxMs = 1_000;
/** Limit of each of the two ports. A connection beyond it is closed. */
const connectionsMax = 10_000;

/**
 * Opens one address for several nodes. Each new connection goes to the next node that reports ready and answers. The
 * balancer forwards bytes, so all transports and TLS work. For trials and tests only: it hides the addresses of
 * callers. Rejects if a port is taken.
 */
export async function startBalancer(options: BalancerOptions): Promise<Balancer> {
  const rotation = new Rotation();
  const sockets = new Set<Socket>();
  const open = (port: number, portOf: (node: BalancedNode) => number): Promise<Server> => {
    const server = createServer({ noDelay: true }, (client) => {
      track(client, sockets);
      void passOn(client, rotation.next(), portOf, sockets);
    });
    server.maxConnections = connectionsMax;
    return listening(server, port, options.host);
  };
  const http = await open(options.port, (node) => node.port);
  const grpc = await open(options.grpcPort, (node) => node.grpcPort).catch((error: unknown) => {
    http.close();
    throw error;
  });
  rotation.watch();
  return {
    port: portOfServer(http),
    grpcPort: portOfServer(grpc),
    add: (node) => rotation.add(node),
    async [Symbol.asyncDispose]() {
      rotation.end();
      const closed = [http, grpc].map((server) => new Promise((resolve) => server.close(resolve)));
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
    },
  };
}

/** Round-robin over the ready nodes. The other nodes come last: one of them may be about to become ready. */
class Rotation {
  readonly #nodes: BalancedNode[] = [];
  readonly #ready = new Set<BalancedNode>();
  #next = 0;
  #timer: NodeJS.Timeout | null = null;

  add(node: BalancedNode): void {
    this.#nodes.push(node);
    void this.#look(node);
  }

  /** Returns all nodes, in the order in which the next connection should try them. */
  next(): readonly BalancedNode[] {
    this.#next += 1;
    const ready = this.#nodes.filter((node) => this.#ready.has(node));
    const others = this.#nodes.filter((node) => !this.#ready.has(node));
    const at = ready.length === 0 ? 0 : this.#next % ready.length;
    return [...ready.slice(at), ...ready.slice(0, at), ...others];
  }

  watch(): void {
    this.#timer = setInterval(() => {
      for (const node of this.#nodes) void this.#look(node);
    }, lookEveryMs);
  }

  end(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  async #look(node: BalancedNode): Promise<void> {
    if (await isReady(node.host, node.internalPort)) this.#ready.add(node);
    else this.#ready.delete(node);
  }
}

async function passOn(
  client: Socket,
  nodes: readonly BalancedNode[],
  portOf: (node: BalancedNode) => number,
  sockets: Set<Socket>,
): Promise<void> {
  for (const node of nodes) {
    if (client.destroyed) return;
    const upstream = await connected(node.host, portOf(node));
    if (upstream === null) continue;
    track(upstream, sockets);
    client.once('close', () => upstream.destroy());
    upstream.once('close', () => client.destroy());
    if (client.destroyed) upstream.destroy();
    client.pipe(upstream).pipe(client);
    return;
  }
  client.destroy();
}

function connected(host: string, port: number): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, noDelay: true });
    const late = setTimeout(() => socket.destroy(), connectMaxMs);
    socket.on('error', () => socket.destroy());
    socket.once('connect', () => {
      clearTimeout(late);
      resolve(socket);
    });
    socket.once('close', () => {
      clearTimeout(late);
      resolve(null);
    });
  });
}

function track(socket: Socket, sockets: Set<Socket>): void {
  sockets.add(socket);
  socket.on('error', () => socket.destroy());
  socket.once('close', () => sockets.delete(socket));
}

function listening(server: Server, port: number, host: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}

function portOfServer(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The balancer does not listen');
  return address.port;
}
