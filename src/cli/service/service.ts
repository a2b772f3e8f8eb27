import { restAddress } from '../../client/call/rest-address.ts';
import type { LedgerTrustClient } from '../../client/client.ts';
import type { Signer } from '../../client/signing/signing.ts';
import type { WatermarkStore } from '../../client/watermark-store.ts';
import { readInput, type Terminal, usageError } from '../terminal/terminal.ts';

/** `name` is that of the option or variable with this value. Throws CliError (exit code 64) if it is no base URL. */
export function baseUrlOf(name: string, value: string): string {
  try {
    restAddress(value);
  } catch {
    throw usageError(`${name} must be a base URL such as https://ledger.example.`);
  }
  return value;
}

/** Imports the client only now, because commands that work offline need not wait for it. */
export async function openService(
  terminal: Terminal,
  options: {
    readonly baseUrl: string;
    readonly apiKey?: string;
    readonly signer?: Signer;
    readonly ca: string | undefined;
    readonly watermarks?: WatermarkStore;
  },
): Promise<LedgerTrustClient> {
  const ca = options.ca === undefined ? undefined : (await readInput(terminal, options.ca)).toString();
  const { createClient } = await import('../../client/client.ts');
  return createClient({ ...options, ca });
}
