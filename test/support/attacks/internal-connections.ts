import { setTimeout as delay } from 'node:timers/promises';
import { keepBegun, tlsHello } from './begun-connections.ts';

const half = Buffer.from('GET /health/live HTTP/1.1\r\nHost: a\r\n');
/** Nodes of a cluster speak TLS on this port. */
const beginnings = [Buffer.alloc(0), half, tlsHello];
/** An address has 64 places of the port's 256. */
const addresses = Array.from({ length: 8 }, (_, at) => `127.0.1.${at + 1}`);
const socketsEach = 16;
const probeEveryMs = 500;
const probeMaxMs = 5_000;

/** Throws if the internal port does not answer others. */
async function probe(opsBase: string): Promise<void> {
  const answer = await fetch(`${opsBase}/health/live`, { signal: AbortSignal.timeout(probeMaxMs) });
  await answer.text();
  if (answer.status !== 200) throw new Error(`The internal port answered ${answer.status}`);
}

/**
 * Connections to the internal port with nothing, half a request or a begun TLS handshake, on 16 sockets each and from
 * eight addresses. Others are answered before and meanwhile. Resolves to how many began.
 */
export async function run(opsBase: string, signal: AbortSignal, connections: number): Promise<number> {
  await probe(opsBase);
  const { hostname: host, port } = new URL(opsBase);
  const sockets = Array.from({ length: connections * socketsEach }, (_, at) => ({
    host,
    port: Number(port),
    localAddress: addresses[at % addresses.length] ?? '',
    sent: beginnings[at % beginnings.length] ?? half,
  }));
  const probing = async (): Promise<void> => {
    while (!signal.aborted) {
      await probe(opsBase);
      await delay(probeEveryMs, undefined, { signal }).catch(() => {});
    }
  };
  const [begun] = await Promise.all([keepBegun(sockets, signal), probing()]);
  return begun;
}
