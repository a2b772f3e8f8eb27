/**
 * What Node is started with where it runs the service. Its own code is some 50 MB, of which a busy node jumps through so much that the
 * processor waits for page tables; on 2 MB pages (Linux, memory of its own) it takes 7 % less processor time for a unary gRPC call
 * (docs/performance.md). `silent`: elsewhere it runs without. package.json, Dockerfile and docker-compose.yml say the same.
 */
export const nodeArguments: readonly string[] = ['--use-largepages=silent'];
