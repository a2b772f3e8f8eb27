import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Listener } from '../rpc/listening.ts';
import { certificateFault } from '../runtime/config/certificates.ts';
import { ConfigError } from '../runtime/start-error.ts';
import type { Config } from './config.ts';

interface ListenerPlace {
  readonly portVariable: string;
  readonly port: number;
  readonly hostVariable: string;
  readonly host: string;
}

/** Throws ConfigError, which says what to set, if the address or port cannot be used. */
export async function listen<T extends Listener>(place: ListenerPlace, opening: Promise<T>): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    throw listenError(place, error);
  }
}

/** A ConfigError that names the variable, if the operator can correct the cause. */
function listenError({ portVariable, port, hostVariable, host }: ListenerPlace, error: unknown): unknown {
  let cause = error;
  while (cause instanceof Error && !('code' in cause) && cause.cause !== undefined) cause = cause.cause;
  const code = cause instanceof Error && 'code' in cause ? cause.code : null;
  if (code === 'EADDRINUSE')
    return new ConfigError(`Set ${portVariable} to a free port: something else listens on ${port}.`);
  if (code === 'EACCES')
    return new ConfigError(`Set ${portVariable} to a port that this user may open: ${port} is refused.`);
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return new ConfigError(`Set ${hostVariable} to an address of this machine, such as 127.0.0.1: ${host} is none.`);
  return error;
}

/** null: without TLS. Throws ConfigError if the files cannot be read or are not valid at `nowMs`. */
export function readTls(config: Config, nowMs: number): { readonly cert: Buffer; readonly key: Buffer } | null {
  if (config.tls === null) return null;
  const read = (variable: string, file: string): Buffer => {
    try {
      return readFileSync(file);
    } catch {
      throw new ConfigError(`Set ${variable} to a PEM file that this user may read; ${file} is none.`);
    }
  };
  const { certFile, keyFile } = config.tls;
  const tls = { cert: read('TLS_CERT_FILE', certFile), key: read('TLS_KEY_FILE', keyFile) };
  const fault = certificateFault(
    { variable: 'TLS_CERT_FILE', file: certFile, text: tls.cert },
    { variable: 'TLS_KEY_FILE', file: keyFile, text: tls.key },
    nowMs,
  );
  if (fault !== null) throw new ConfigError(fault);
  try {
    createSecureContext(tls);
  } catch {
    throw new ConfigError(
      'Set TLS_CERT_FILE and TLS_KEY_FILE to a certificate and the private key that belongs to it, both PEM.',
    );
  }
  return tls;
}
