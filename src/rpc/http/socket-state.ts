import { createReadStream, readlinkSync } from 'node:fs';
import type { Socket } from 'node:net';

/** Linux's tables of TCP sockets (proc_net_tcp.txt): of IPv4, and of IPv6 with the mapped addresses of IPv4. */
const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
/** A line with its fields `tx_queue`, in hexadecimal digits, and `inode`. */
const socketLine = /^ *\d+: \S+ \S+ \S+ ([0-9A-F]+):\S+ \S+ \S+ +\d+ +\d+ (\d+) /gm;

/** Members of a socket that Node does not publish. */
interface SocketInternals {
  readonly _handle?: { readonly fd?: number; getpeername?(into: object): number } | null;
}

/** The inode of a TCP socket, by which Linux names it. '': it has closed, or this is not Linux. */
export function inodeOf(socket: Socket): string {
  const fileDescriptor = (socket as SocketInternals)._handle?.fd ?? -1;
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fileDescriptor}`))?.[1] ?? '';
  } catch {
    return '';
  }
}

/** Whether the connection is over, as the system says. Node notices a reset only of a socket that it reads from. */
export function isGone(socket: Socket): boolean {
  return ((socket as SocketInternals)._handle?.getpeername?.({}) ?? 0) < 0;
}

/**
 * Returns how many bytes wait in the kernel's send buffer of each of these sockets until the other end takes them, by
 * inode. A socket of which the system does not tell is left out. Never rejects.
 */
export async function unsentBytes(inodes: { has(inode: string): boolean }): Promise<ReadonlyMap<string, number>> {
  const unsent = new Map<string, number>();
  for (const table of tables) {
    try {
      let rest = '';
      // The table of a host with many connections has megabytes, of which Linux gives at most a page at a time.
      for await (const part of createReadStream(table, { encoding: 'latin1', highWaterMark: 4_096 })) {
        const text: string = rest + part;
        const end = text.lastIndexOf('\n') + 1;
        for (const [, queue = '', inode = ''] of text.slice(0, end).matchAll(socketLine))
          if (inodes.has(inode)) unsent.set(inode, Number.parseInt(queue, 16));
        rest = text.slice(end);
      }
    } catch {
      // Not Linux, IPv6 is off, no descriptor is free, or this process may not read it.
    }
  }
  return unsent;
}
