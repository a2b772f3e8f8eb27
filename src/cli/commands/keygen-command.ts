import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { Command } from 'commander';
import { publicKeyBase64 } from '../../client/signing/signing.ts';
import { type Terminal, usageError } from '../terminal/terminal.ts';
import { privateKeyPem, readPrivateKey, writePrivateKey } from './file-content.ts';

interface KeygenOptions {
  readonly out?: string;
  readonly from?: string;
}

/** `ledger-trust keygen`: makes a signing key for an actor or for the authority. */
export function addKeygen(program: Command, terminal: Terminal): void {
  program
    .command('keygen')
    .description('Make an Ed25519 private key (PKCS#8 PEM) and show its public key, which is what you enrol.')
    .option('--out <file>', 'write the private key there, readable by you alone; without it, to stdout')
    .option('--from <file>', 'make no key: show the public key of the one in this file')
    .action(async (options: KeygenOptions) => {
      if (options.from !== undefined) {
        if (options.out !== undefined) throw usageError('Give either --from or --out.');
        return terminal.print(`${publicKeyBase64(await readPrivateKey(terminal, options.from))}\n`);
      }
      const { privateKey } = generateKeyPairSync('ed25519');
      await keep(terminal, privateKey, options.out);
    });
}

/** Without a file, the public key goes to stderr, so that `keygen > key.pem` keeps the private key alone. */
async function keep(terminal: Terminal, privateKey: KeyObject, out: string | undefined): Promise<void> {
  const publicKey = publicKeyBase64(privateKey);
  if (out === undefined) {
    await terminal.print(privateKeyPem(privateKey));
    return terminal.tell(`public key: ${publicKey}\n`);
  }
  await writePrivateKey(out, privateKey);
  await terminal.print(`${publicKey}\n`);
}
