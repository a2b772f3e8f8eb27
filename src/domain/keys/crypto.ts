import { nobleCrypto } from './crypto-noble.ts';
import { nodeCrypto } from './crypto-node.ts';
import type { CryptoPort } from './crypto-port.ts';

// An import of node:crypto would keep browsers and their bundlers from loading the domain.
const node = globalThis.process?.getBuiltinModule?.('node:crypto');

/** Node's crypto module where there is one. */
export const platformCrypto: CryptoPort = node === undefined ? nobleCrypto : nodeCrypto(node);
