/**
 * What Node is started with where it runs the service, as measured (docs/performance.md). package.json, Dockerfile and docker-compose.yml say
 * the same.
 *
 * - Its own code is some 50 MB, of which a busy node jumps through so much that the processor waits for page tables; on 2 MB pages (Linux,
 *   memory of its own) it takes 7 % less processor time for a unary gRPC call. `silent`: elsewhere it runs without.
 * - Twice V8's own space for new objects, 32 MiB: calls under way then seldom outlive two collections of it, so that the heap for old objects
 *   stays smaller: 50 to 70 MiB less in all.
 */
export const nodeArguments: readonly string[] = ['--use-largepages=silent', '--max-semi-space-size=32'];

/**
 * Variables that it is started with, where they are not set (package.json, the image). glibc reads this one before Node runs (mallopt(3),
 * M_ARENA_MAX): its threads share two pools of memory. With one for each, what they took while code was compiled stays with each: 24 MiB more.
 */
export const nodeVariables: Readonly<Record<string, string>> = { MALLOC_ARENA_MAX: '2' };

/**
 * The same where npm starts the sources as they are: what Node made of them is kept for the next start, in a folder below that of package.json.
 * That start then needs no compiler of TypeScript: two thirds of the processor time, and some 13 MiB less.
 */
export const checkoutVariables: Readonly<Record<string, string>> = {
  ...nodeVariables,
  NODE_COMPILE_CACHE: 'node_modules/.cache/node-compile',
};
