import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { compileCache } from './compile-cache.ts';

/** The bytes of each connection before it is silent: one answered request, or an HTTP/2 preface. */
const greetings = {
  http: 'GET /health HTTP/1.1\r\nHost: a\r\n\r\n',
  grpc: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u0004\0\0\0\0\0',
} as const;
type Greeting = keyof typeof greetings;

/** Connections opened at a time: fewer than a port's backlog. */
const atOnce = 250;

/** Connections that a process of their own holds; they end with it. */
interface IdleConnections extends Disposable {
  /** How many of them are open, each greeted and answered. */
  open(): Promise<number>;
}

export async function idleConnections(port: number, greeting: Greeting, count: number): Promise<IdleConnections> {
  const child = fork(fileURLToPath(import.meta.url), [String(port), greeting, String(count)], {
    env: { ...process.env, ...compileCache },
  });
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the process of the connections has ended')));
  ended.catch(() => {});
  const told = async (): Promise<number> => Number((await Promise.race([once(child, 'message'), ended]))[0]);
  await told();
  return {
    open: () => {
      const answer = told();
      child.send('how many');
      return answer;
    },
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  };
}

async function openAll(port: number, greeting: Greeting, count: number): Promise<ReadonlySet<Socket>> {
  const open = new Set<Socket>();
  const one = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket
        .on('error', () => {})
        .on('close', () => {
          open.delete(socket);
          resolve();
        })
        .once('data', () => {
          open.add(socket);
          resolve();
        });
      // What comes behind the first answer is read and dropped.
      socket.resume();
      socket.write(greetings[greeting], 'latin1');
    });
  for (let left = count; left > 0; left -= atOnce)
    await Promise.all(Array.from({ length: Math.min(left, atOnce) }, one));
  return open;
}

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  const [port, greeting, count] = process.argv.slice(2);
  const open = await openAll(Number(port), greeting as Greeting, Number(count));
  process.on('message', () => process.send?.(open.size));
  process.on('disconnect', () => process.exit());
  process.send(open.size);
}
