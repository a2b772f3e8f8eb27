import { readTls } from '../src/node/listeners.ts';
import { readSharedNodeKeys } from '../src/node/node-keys.ts';
import { authorityFault, certificateFault, isIssuedBy } from '../src/runtime/config/certificates.ts';
import { ConfigError } from '../src/runtime/start-error.ts';
import type { ClusterConfig } from './config.ts';

/** Checks the key and certificate files of a configuration before the start. Throws ConfigError. */
export function checkClusterFiles(config: ClusterConfig, nowMs: number): void {
  const { node, peerFiles, cassandra, cassandraCaFile } = config;
  readSharedNodeKeys(node);
  readTls(node, nowMs);
  if (cassandra.tlsCa !== null && cassandraCaFile !== null) {
    const authority = { variable: 'CASSANDRA_TLS_CA_FILE', file: cassandraCaFile, text: cassandra.tlsCa };
    const caFault = authorityFault(authority, nowMs);
    if (caFault !== null) throw new ConfigError(caFault);
  }
  if (peerFiles === null) return;
  const { ca, cert, key } = peerFiles;
  const fault = authorityFault(ca, nowMs) ?? certificateFault(cert, key, nowMs);
  if (fault !== null) throw new ConfigError(fault);
  if (!isIssuedBy(cert, ca))
    throw new ConfigError(
      `Set CLUSTER_TLS_CERT_FILE to a certificate of the authority in CLUSTER_TLS_CA_FILE; ${cert.file} is of another one.`,
    );
}
