import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TlsKeys } from '../../src/rpc/http/server.ts';

/** A self-signed certificate for localhost, and its key. */
export function newTlsKeys(): TlsKeys {
  const dir = mkdtempSync(join(tmpdir(), 'tls-'));
  const [keyFile, certFile] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  try {
    const files = ['-keyout', keyFile, '-out', certFile];
    execFileSync('openssl', ['req', '-x509', ...kind, ...files, ...names], { stdio: 'ignore' });
    return { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  } finally {
    rmSync(dir, { recursive: true });
  }
}
