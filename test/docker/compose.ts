import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Transports } from '../support/client-order.ts';

const run = promisify(execFile);
const root = resolve(import.meta.dirname, '../..');
const outputMaxBytes = 64 * 1024 * 1024;

/** Runs `docker …` in the checkout and answers what it printed. Throws with what it said where it fails. */
export async function docker(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  const options = { cwd: root, env: { ...process.env, ...env }, maxBuffer: outputMaxBytes };
  const { stdout } = await run('docker', [...args], options);
  return stdout.trim();
}

/** What the image's MALLOC_PACKAGE has to be on this machine: base images without apt-get get none. */
export async function mallocPackage(): Promise<string> {
  const found = await docker(['run', '--rm', 'node:24-bookworm-slim', 'sh', '-c', 'command -v apt-get || true']);
  return found === '' ? '' : 'libjemalloc2';
}

/** The project of docker-compose.yml under a name of its own, at any free ports. */
export interface ComposeProject extends AsyncDisposable {
  compose(...args: string[]): Promise<string>;
  /** The id of a service's container. */
  container(service: string): Promise<string>;
  /** `host:port` where a port of a service is published. */
  published(service: string, port: number): Promise<string>;
}

/** The transports of its balancer. */
export async function portsOf(project: ComposeProject): Promise<Transports> {
  return {
    base: `http://${await project.published('balancer', 8080)}`,
    grpcAddress: await project.published('balancer', 50051),
  };
}

/**
 * `compose up`, which returns once all that has a health check is healthy. Disposing it removes all of it, data too.
 */
export async function composeUp(name: string, profile: string): Promise<ComposeProject> {
  const env = { PORT: '0', GRPC_PORT: '0', COMPOSE_PROFILES: profile, MALLOC_PACKAGE: await mallocPackage() };
  const compose = (...args: string[]) => docker(['compose', '-p', name, ...args], env);
  const down = async () => void (await compose('down', '-v', '--timeout', '25'));
  try {
    await compose('build');
    await compose('up', '-d');
  } catch (error) {
    const logs = await compose('logs', '--tail=20').catch(() => '');
    await down().catch(() => {});
    throw new Error(`compose up failed: ${String(error)}\n${logs}`, { cause: error });
  }
  return {
    compose,
    container: (service) => compose('ps', '-q', service),
    published: (service, port) => compose('port', service, String(port)),
    [Symbol.asyncDispose]: down,
  };
}
