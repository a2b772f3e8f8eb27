import { closeSync, constants, linkSync, openSync, readdirSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { StartError } from '../start-error.ts';

/** sun_path has 108 bytes on Linux, 104 elsewhere; longer paths are reached through the open directory. */
const SOCKET_PATH_MAX_BYTES = 103;
const ATTEMPTS_MAX = 100;
const NUMBERED = /^serving-([1-9][0-9]*)\.sock$/;
const DRAFT = /^serving-new-.*\.sock$/;

export interface ServingLock {
  release(): Promise<void>;
}

/**
 * Makes this process the one that serves a directory, by listening on a Unix socket in it. StartError if another one does.
 *
 * A socket, because the kernel ends it with its process, however that dies, and a connection tells the living from the
 * dead at once, also between containers that share the directory: a file with a process id means nothing in another
 * pid namespace, an abstract socket is not seen from another network namespace, and Node has no flock.
 *
 * The sockets are numbered and the highest stays where it is when its process ends, for whoever removes a dead lock by
 * its name may remove the living one that has just taken its place. Who finds the highest one dead makes the next,
 * listening already, by link(2), which one process alone can; and holds the lock if no higher one is there then.
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

/** Whether the draft is the socket of that number now, and no higher one is there. */
function take(directory: string, draft: string, number: number): boolean {
  try {
    linkSync(join(directory, draft), join(directory, nameOf(number)));
  } catch (error) {
    // Somebody was quicker: the number is taken, or the draft was cleaned away.
    if (codeOf(error) === 'EEXIST' || codeOf(error) === 'ENOENT') return false;
    throw noSocket(error);
  }
  remove(join(directory, draft));
  if (highestNumber(directory) === number) return true;
  remove(join(directory, nameOf(number)));
  return false;
}

/** Removes what dead processes left below our number. */
async function clean(directory: string, number: number, address: (name: string) => string): Promise<void> {
  for (const name of readdirSync(directory)) {
    const isLower = Number(NUMBERED.exec(name)?.[1] ?? number) < number;
    if (isLower || (DRAFT.test(name) && !(await answers(address(name))))) remove(join(directory, name));
  }
}

/** null where the path is taken. */
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

/** Whether a process listens there. Its event loop may be busy: the kernel accepts for it. */
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

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
