import { GrpcAppendStream } from './append/append-stream.ts';
import type { ClientOptions } from './call/client-options.ts';
import { createGrpcTransport } from './call/grpc-transport.ts';
import { undiciSender } from './call/undici-sender.ts';
import { clientOf, type GrpcParts } from './client-of.ts';
import type { LedgerTrustClient } from './ledger-trust-client.ts';

export type { LedgerTrustClient } from './ledger-trust-client.ts';

/** Makes a client. Sends nothing before the first call. Throws TypeError for options that cannot work. */
export function createClient(options: ClientOptions): LedgerTrustClient {
  const grpc = options.grpcUrl === undefined ? null : grpcParts(options.grpcUrl, options);
  return clientOf(options, (origin) => undiciSender(origin, options), grpc);
}

function grpcParts(grpcUrl: string, options: ClientOptions): GrpcParts {
  const transport = createGrpcTransport(grpcUrl, options);
  return {
    transport,
    appendStream: (parts, streamOptions) => new GrpcAppendStream({ ...parts, transport }, streamOptions),
  };
}
