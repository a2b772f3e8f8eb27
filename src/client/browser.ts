import type { ClientOptions } from './call/client-options.ts';
import { fetchSender } from './call/fetch-sender.ts';
import { clientOf } from './client-of.ts';
import type { LedgerTrustClient } from './ledger-trust-client.ts';

/** The public API of the client in browsers and wherever there is fetch and no Node: REST alone. */
export * from './api.ts';

/** Has the name that it has in Node, and throws TypeError. In a page keep watermarks by a WatermarkStore of your own. */
export class Watermarks {
  constructor() {
    throw new TypeError('Watermarks in a file need Node: here give the client a WatermarkStore of your own');
  }
}

const nodeOnly = ['grpcUrl', 'grpcChannel', 'ca', 'connections', 'dispatcher'] as const;

/**
 * Makes a client. Sends nothing before the first call. Throws TypeError for options that cannot work, and for those
 * that need Node.
 */
export function createClient(options: ClientOptions): LedgerTrustClient {
  const name = nodeOnly.find((option) => options[option] !== undefined);
  if (name !== undefined) throw new TypeError(`${name} needs Node: here the client sends by fetch`);
  if (options.transport === 'grpc') throw new TypeError('gRPC needs Node: here the client sends by fetch');
  return clientOf(options, fetchSender, null);
}
