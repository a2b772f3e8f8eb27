import { setFlagsFromString } from 'node:v8';

/**
 * Arguments of Node for running the service, as measured (docs/adr/0039-heap-and-malloc-settings.md). package.json,
 * Dockerfile and docker-compose.yml have the same ones.
 *
 * - Node's own code is some 50 MB. A busy node jumps through so much of it that the processor waits for page tables. On
 *   2 MB pages (Linux, private memory) a unary gRPC call takes 7 % less processor time. `silent`: without such pages it
 *   runs on normal ones.
 * - 32 MiB of space for new objects, twice V8's own. Calls under way then seldom outlive two collections of it, so the
 *   heap for old objects stays smaller: 50 to 70 MiB less in all.
 */
export const nodeArguments: readonly string[] = ['--use-largepages=silent', '--max-semi-space-size=32'];

/**
 * Environment variables for Node, unless they are set (package.json, the image). glibc reads them before Node runs
 * (mallopt(3)).
 *
 * - M_ARENA_MAX: all threads share two pools of memory. With one pool a thread, each keeps what it took while code was
 *   compiled: 24 MiB more.
 * - M_MMAP_THRESHOLD: a buffer of 64 KiB, which Node takes for each read of a socket, goes back to the system when it
 *   is freed. In the pools such buffers stay: after 20 s of calls whose requests never end the process kept 398 MiB,
 *   and 306 with this. Appends and reads cost the same.
 */
export const nodeVariables: Readonly<Record<string, string>> = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '65536',
};

/**
 * What the image sets as well (docs/adr/0058-the-image-runs-on-jemalloc.md).
 *
 * - LD_PRELOAD: jemalloc gives freed memory back after some ten seconds, where glibc keeps it as long as something in
 *   use lies behind it. A unary gRPC append takes a fifth less processor time with it. Where the library is missing,
 *   the loader says so and glibc's malloc remains.
 * - MALLOC_CONF: a thread of jemalloc's own gives the memory back. Without it the main thread does, and stood still for
 *   up to 2.6 s under reads whose callers left.
 */
export const imageVariables: Readonly<Record<string, string>> = {
  LD_PRELOAD: 'libjemalloc.so.2',
  MALLOC_CONF: 'background_thread:true',
};

/**
 * Variables for npm, which runs the sources directly. Node caches the compiled sources for the next start, in a folder
 * under package.json's. That start needs no TypeScript compiler: it takes two thirds of the processor time, and some 13
 * MiB less.
 */
export const checkoutVariables: Readonly<Record<string, string>> = {
  ...nodeVariables,
  NODE_COMPILE_CACHE: 'node_modules/.cache/node-compile',
};

/**
 * How much the heap may grow before the next full collection, in percent of what survived the last one. V8 itself
 * allows up to 300 % if there is much memory, and a node under load then holds three times what it uses. Measured
 * (docs/adr/0039-heap-and-malloc-settings.md): 150 % holds 45 MiB more, for the same processor time.
 */
const growthPercent = 100;

/**
 * Bounds the heaps of this process, and turns V8's pretenuring off: an object that V8 makes among the old ones at once
 * keeps all that it points to until the next full collection
 * (docs/adr/0042-few-objects-outlive-a-small-collection.md). Call it in the process of a node, before the node starts.
 */
export function setHeapFlags(): void {
  setFlagsFromString(`--heap-growing-percent=${growthPercent}`);
  setFlagsFromString('--no-allocation-site-pretenuring');
  // Resets the command line's flag. The main thread has applied it already; in other threads it would override their
  // `resourceLimits`.
  setFlagsFromString('--max-semi-space-size=0');
}
