import { closeSync, constants, linkSync, openSync, readdirSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { StartError } from '../../../runtime/start-error.ts';

/** sun_path has 108 bytes on Linux, 104 elsewhere. Longer paths are addressed through the open directory. */
const SOCKET_PATH_MAX_BYTES = 103;
const ATTEMPTS_MAX = 100;
const NUMBERED = /^serving-([1-9][0-9]*)\.sock$/;
const DRAFT = /^serving-new-.*\.sock$/;

interface ServingLock {
  release(): Promise<void>;
}

/**
 * Makes this process the only one that serves a directory, by listening on a Unix socket in it. Throws StartError if
 * another process serves the directory.
 *
 * The kernel closes a socket when its process ends in any way, and a connection attempt shows at once whether the
 * process lives, also between containers that share the directory. A process id means nothing in another pid namespace,
 * an abstract socket is not visible in another network namespace, and Node has no flock.
 *
 * The sockets are numbered. The highest one stays when its process ends: a process that removes a dead lock by its name
 * might remove a live lock that has just replaced it. A process that finds the highest socket dead links its own
 * socket, which listens already, to the next number by link(2), where only one process succeeds.
 */
export async function acquireServingLock(directory: string): Promise<ServingLock> {
  const handle = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const address = (name: string) => {
    const path = join(directory, name);
    return Buffer.byteLength(path) <= SOCKET_PATH_MAX_BYTES ? path : `/proc/self/fd/${handle}/${name}`;
  };
  try {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const highest = highestNumber(directory);
      if (highest > 0 && (await answers(address(nameOf(highest)))))
        throw new StartError(
          `Another process is serving ${directory}: stop it first, or give this one a DATA_DIR of its own.`,
        );
      const draft = `serving-new-${process.pid}-${attempt}.sock`;
      const server = await listen(address(draft));
      if (server === null) continue;
      if (take(directory, draft, highest + 1)) {
        await clean(directory, highest + 1, address);
        return { release: () => close(server, handle) };
      }
      await close(server);
    }
    throw new StartError(
      `The sockets in ${directory} cannot be taken: remove serving-*.sock if no process is serving it.`,
    );
  } catch (error) {
    closeSync(handle);
    throw error;
  }
}

function nameOf(number: number): string {
  return `serving-${number}.sock`;
}

function highestNumber(directory: string): number {
  return readdirSync(directory).reduce((highest, name) => Math.max(highest, Number(NUMBERED.exec(name)?.[1] ?? 0)), 0);
}

function take(directory: string, draft: string, number: number): boolean {
  try {
    linkSync(join(directory, draft), join(directory, nameOf(number)));
  } catch (error) {
    // Another process was faster: it has the number, or has removed the draft.
    if (codeOf(error) === 'EEXIST' || codeOf(error) === 'ENOENT') return false;
    throw noSocket(error);
  }
  remove(join(directory, draft));
  if (highestNumber(directory) === number) return true;
  remove(join(directory, nameOf(number)));
  return false;
}

async function clean(directory: string, number: number, address: (name: string) => string): Promise<void> {
  for (const name of readdirSync(directory)) {
    const isLower = Number(NUMBERED.exec(name)?.[1] ?? number) < number;
    if (isLower || (DRAFT.test(name) && !(await answers(address(name))))) remove(join(directory, name));
  }
}

function listen(path: string): Promise<Server | null> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      if (codeOf(error) === 'EADDRINUSE') resolve(null);
      else reject(noSocket(error));
    });
    server.listen(path, () => resolve(server.unref()));
  });
}

/** Whether a process listens at the path. The kernel accepts the connection even if that process is busy. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error) => resolve(codeOf(error) !== 'ECONNREFUSED' && codeOf(error) !== 'ENOENT'));
  });
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

function close(server: Server, handle?: number): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      if (handle !== undefined) closeSync(handle);
      resolve();
    });
  });
}

function noSocket(error: unknown): StartError {
  return new StartError(
    `No socket can be made in DATA_DIR (${codeOf(error)}): it has to be on a local file system that this user may write to.`,
    error,
  );
}

export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error ? String(error.code) : error.message;
}
