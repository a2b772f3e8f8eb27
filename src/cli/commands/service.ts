import type { LedgerTrustClient } from '../../client/client.ts';
import { readInput, type Terminal, usageError } from '../terminal/terminal.ts';

/** Throws CliError (exit code 64) if the value of `option` is no base URL. */
export function baseUrlOf(option: string, value: string): string {
  const url = URL.parse(value);
  const isBase = /^https?:$/.test(url?.protocol ?? '') && url?.username === '' && url.search === '' && url.hash === '';
  if (!isBase) throw usageError(`Option ${option} must be a base URL such as https://ledger.example.`);
  return value;
}

/** Imports the client only now, because commands that work offline need not wait for it. */
export async function openService(
  terminal: Terminal,
  options: { readonly baseUrl: string; readonly apiKey?: string; readonly ca: string | undefined },
): Promise<LedgerTrustClient> {
  const ca = options.ca === undefined ? undefined : (await readInput(terminal, options.ca)).toString();
  const { createClient } = await import('../../client/client.ts');
  return createClient({ ...options, ca });
}
