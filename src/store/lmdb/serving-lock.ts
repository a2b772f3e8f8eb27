import { closeSync, constants, openSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { StartError } from '../start-error.ts';

const NAME = 'serving.sock';
/** sun_path has 108 bytes on Linux, 104 elsewhere; longer paths are reached through the open directory. */
const SOCKET_PATH_MAX_BYTES = 103;
const ATTEMPTS_MAX = 5;

export interface ServingLock {
  release(): Promise<void>;
}

/**
 * Makes this process the one that serves a directory, by listening on a Unix socket in it. StartError if another one does.
 *
 * A socket, because the kernel ends it with its process, however that dies, and a connection tells the living from the
 * dead at once, also between containers that share the directory: a file with a process id means nothing in another
 * pid namespace, an abstract socket is not seen in another network namespace, and Node has no flock. Two that start
 * in the same instant over a dead socket might both get it; that costs speed, not truth, because the claims of ledgers
 * are compared inside LMDB's transactions.
 */
export async function acquireServingLock(directory: string): Promise<ServingLock> {
  const handle = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const path = socketPath(directory, handle);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const server = await listen(path);
      if (server !== null) return { release: () => release(server, handle) };
      if (await answers(path))
        throw new StartError(
          `Another process is serving ${directory}: stop it first, or give this one a DATA_DIR of its own.`,
        );
      removeDead(path);
    }
    throw new StartError(
      `${join(directory, NAME)} can be neither taken nor removed: remove it if no process is serving ${directory}.`,
    );
  } catch (error) {
    closeSync(handle);
    throw error;
  }
}

function socketPath(directory: string, handle: number): string {
  const path = join(directory, NAME);
  return Buffer.byteLength(path) <= SOCKET_PATH_MAX_BYTES ? path : `/proc/self/fd/${handle}/${NAME}`;
}

/** null where the path is taken. */
function listen(path: string): Promise<Server | null> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(null);
      else
        reject(
          new StartError(
            `No socket can be made in DATA_DIR (${error.code}): it has to be on a local file system that this user may write to.`,
            error,
          ),
        );
    });
    server.listen(path, () => resolve(server.unref()));
  });
}

/** Whether a process listens there. Its event loop may be busy: the kernel accepts for it. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT'),
    );
  });
}

function removeDead(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function release(server: Server, handle: number): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      closeSync(handle);
      resolve();
    });
  });
}
