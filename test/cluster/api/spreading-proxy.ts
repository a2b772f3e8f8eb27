import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';

/** Passes each HTTP request, as it is, to the next of several servers. */
export async function openSpreadingHttp(
  ports: readonly number[],
): Promise<{ readonly port: number } & AsyncDisposable> {
  const agent = new Agent({ keepAlive: true });
  let turn = 0;
  const server = createServer((incoming: IncomingMessage, outgoing: ServerResponse) => {
    const port = ports[turn++ % ports.length];
    const { method, url: path, rawHeaders } = incoming;
    const passed = request({ host: '127.0.0.1', port, method, path, headers: rawHeaders, agent, setHost: false });
    passed.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders);
      answer.pipe(outgoing);
    });
    // What breaks behind breaks in front: nothing is made up here.
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) passed.destroy();
    });
    incoming.pipe(passed);
  });
  return listening(server, () => agent.destroy());
}

/** Passes each connection to the next of several servers. */
export function openSpreadingTcp(ports: readonly number[]): Promise<{ readonly port: number } & AsyncDisposable> {
  let turn = 0;
  const server = createTcpServer({ noDelay: true }, (near: Socket) => {
    const far = connect({ host: '127.0.0.1', port: ports[turn++ % ports.length] ?? 0, noDelay: true });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.pipe(other);
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    }
  });
  return listening(server, () => {});
}

async function listening(server: Server, end: () => void): Promise<{ readonly port: number } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      end();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
