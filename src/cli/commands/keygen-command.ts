import { generateKeyPairSync } from 'node:crypto';
import type { Command } from 'commander';
import { publicKeyBase64 } from '../../client/signing/signing.ts';
import { type Terminal, usageError } from '../terminal/terminal.ts';
import { privateKeyPem, readPrivateKey, writePrivateKey } from './file-content.ts';

interface KeygenOptions {
  readonly out?: string;
  readonly from?: string;
  readonly json?: boolean;
}

/** `ledger-trust keygen`: makes a signing key for an actor or for the authority. */
export function addKeygen(program: Command, terminal: Terminal): void {
  program
    .command('keygen')
    .description('Make an Ed25519 private key (PKCS#8 PEM) and show its public key, which is what you enrol.')
    .option('--out <file>', 'write the private key there, readable by you alone; without it, to stdout')
    .option('--from <file>', 'make no key: show the public key of the one in this file')
    .option('--json', 'show it as JSON: with neither --out nor --from, the private key too')
    .action(async (options: KeygenOptions) => {
      const show = (publicKey: string, more: object = {}) =>
        terminal.print(
          options.json === true ? `${JSON.stringify({ public_key: publicKey, ...more }, null, 2)}\n` : `${publicKey}\n`,
        );
      if (options.from !== undefined) {
        if (options.out !== undefined) throw usageError('Give either --from or --out.');
        return show(publicKeyBase64(await readPrivateKey(terminal, options.from)));
      }
      const { privateKey } = generateKeyPairSync('ed25519');
      const publicKey = publicKeyBase64(privateKey);
      const pem = privateKeyPem(privateKey);
      if (options.out !== undefined) {
        await writePrivateKey(options.out, privateKey);
        return show(publicKey, { file: options.out });
      }
      if (options.json === true) return show(publicKey, { private_key_pem: pem });
      // The public key goes to stderr, so that `keygen > key.pem` keeps the private key alone.
      await terminal.print(pem);
      terminal.tell(`public key: ${publicKey}\n`);
    });
}
