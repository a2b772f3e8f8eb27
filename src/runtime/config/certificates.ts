import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

export interface PemFile {
  readonly variable: string;
  readonly file: string;
  readonly text: string | Buffer;
}

const block = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** What is wrong with a certificate and its key and what to do, or null. Only the first of a chain is checked. */
export function certificateFault(certificate: PemFile, key: PemFile, nowMs: number): string | null {
  const [leaf] = certificatesIn(certificate.text);
  if (leaf === undefined)
    return `Set ${certificate.variable} to a certificate in PEM; ${certificate.file} is none that can be read.`;
  const privateKey = privateKeyIn(key.text);
  if (privateKey === null)
    return `Set ${key.variable} to a private key in PEM without a passphrase; ${key.file} is none that can be read.`;
  if (!leaf.checkPrivateKey(privateKey))
    return `Set ${key.variable} to the private key of the certificate in ${certificate.variable}; ${key.file} belongs to another one.`;
  return timeFault(certificate, leaf, nowMs);
}

/** The same for certificates of authorities. One that is valid now is enough. */
export function authorityFault(authority: PemFile, nowMs: number): string | null {
  const certificates = certificatesIn(authority.text);
  const [first] = certificates;
  if (first === undefined)
    return `Set ${authority.variable} to certificates of authorities in PEM; ${authority.file} holds none that can be read.`;
  const faults = certificates.map((certificate) => timeFault(authority, certificate, nowMs));
  return faults.includes(null) ? null : (faults[0] ?? null);
}

/** Whether an authority has issued the certificate, directly or through the certificates behind it in its file. */
export function isIssuedBy(certificate: PemFile, authority: PemFile): boolean {
  const chain = certificatesIn(certificate.text);
  const authorities = certificatesIn(authority.text);
  return chain.some((link) => authorities.some((ca) => link.checkIssued(ca) && link.verify(ca.publicKey)));
}

function timeFault({ variable, file }: PemFile, certificate: X509Certificate, nowMs: number): string | null {
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  if (nowMs > to)
    return `Set ${variable} to a certificate that is valid now; ${file} has expired on ${new Date(to).toISOString()}.`;
  if (nowMs < from)
    return `Set ${variable} to a certificate that is valid now, or mend the clock; ${file} is valid from ${new Date(from).toISOString()} on.`;
  return null;
}

function certificatesIn(text: string | Buffer): readonly X509Certificate[] {
  try {
    return (text.toString().match(block) ?? []).map((pem) => new X509Certificate(pem));
  } catch {
    return [];
  }
}

function privateKeyIn(text: string | Buffer): KeyObject | null {
  try {
    return createPrivateKey(text.toString());
  } catch {
    return null;
  }
}
