import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** A certificate for all nodes, which is its own authority. Returns the variables of the nodes that name its files. */
export function peerCertificate(dir: string): Record<string, string> {
  const [cert, key] = [join(dir, 'node.pem'), join(dir, 'node.key')];
  const kind = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1'];
  execFileSync('openssl', [...kind, '-keyout', key, '-out', cert, '-subj', '/CN=nodes'], { stdio: 'pipe' });
  return { CLUSTER_TLS_CA_FILE: cert, CLUSTER_TLS_CERT_FILE: cert, CLUSTER_TLS_KEY_FILE: key };
}
