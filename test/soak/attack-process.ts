import { setPriority } from 'node:os';
import { setDefaultCACertificates } from 'node:tls';
import type { AttackTarget } from './attack.ts';
import { attacks } from './attacks.ts';

/**
 * One attack as a process of its own: `node attack-process.ts NAME TARGET CONNECTIONS`, until SIGTERM. It prints a line
 * `begun` once the flood begins, and at the end what it did, as JSON. It runs at a lower priority than the node and its
 * honest caller, since attackers have machines of their own.
 */
const [name = '', to = '', connections = ''] = process.argv.slice(2);
const target: AttackTarget = JSON.parse(to);
if (target.certificate !== null) setDefaultCACertificates([target.certificate]);
const attack = attacks[name];
if (attack === undefined) throw new Error(`There is no attack ${name}: there are ${Object.keys(attacks).join(', ')}.`);
setPriority(10);
const ending = new AbortController();
process.once('SIGTERM', () => ending.abort());
// An attack that waits for the node alone must not end the process.
setInterval(() => {}, 1_000);
const did = await attack(target, ending.signal, Number(connections), () => console.log('begun'));
console.log(JSON.stringify(did));
process.exit(0);
