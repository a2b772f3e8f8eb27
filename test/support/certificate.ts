import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A self-signed certificate for `localhost` and its key. */
export function ownCertificate(): { readonly cert: Buffer; readonly key: Buffer } {
  const directory = mkdtempSync(join(tmpdir(), 'certificate-'));
  const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  const kind = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1'];
  try {
    execFileSync('openssl', [...kind, '-keyout', key, '-out', cert, '-subj', '/CN=localhost'], { stdio: 'pipe' });
    return { cert: readFileSync(cert), key: readFileSync(key) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}
