import { beforeEach, expect, test } from 'vitest';
import { LedgerActor } from '../../../../src/actors/ledger/ledger-actor.ts';
import type { ActorKeys } from '../../../../src/actors/ledger/signing-keys.ts';
import { KeyEndings } from '../../../../src/service/actors/key-endings.ts';
import { append, createMaster, ledgerId, openLedger, signature, supplier } from '../../../support/commands.ts';
import { codeOf, type Rig, rig } from '../../../support/world.ts';

const kid = `svc:actor:${supplier}#key-1`;
const active: ActorKeys = new Map([[kid, { validFrom: '2020-01-01T00:00:00.000Z', revokedAt: null }]]);

let world: Rig;
let endings: KeyEndings;
/** How often keys were read. */
let reads: number;

/** Carries out `meanwhile` between the reading of the keys and the decision. Nothing remembers keys that were read. */
async function appendWhile(meanwhile: () => Promise<void>): Promise<string> {
  reads = 0;
  const read = world.memory.readScope.bind(world.memory);
  world.memory.readScope = async (...args) => {
    const rows = await read(...args);
    await world.clock.advance(0);
    if (reads > 0) await meanwhile();
    return rows;
  };
  const ledger = new LedgerActor(ledgerId, { ...world.parts, keys: endings });
  const deadline = world.clock.now() + 10_000;
  return codeOf(ledger.submit(append({ signature: signature(kid), signatureRule: 'if_keyed', deadline })));
}

/** Ends the key at the next millisecond. */
async function end(): Promise<void> {
  await endings.during(supplier, { kid, revokedAt: new Date(world.clock.now() + 1).toISOString() }, async () => {});
  await world.clock.advance(1);
}

beforeEach(async () => {
  world = rig();
  const read = async () => {
    reads++;
    return active;
  };
  endings = new KeyEndings({ fresh: () => undefined, read }, world.clock);
  const actor = new LedgerActor(ledgerId, world.parts);
  await Promise.all([actor.submit(openLedger()), actor.submit(createMaster({ signatureRule: 'optional' }))]);
});

test('an end counts for a batch whose keys were read before it, though the actor is not remembered', async () => {
  expect(await appendWhile(async () => {})).toBe('carried out');
  expect(await appendWhile(end)).toBe('signing_key_revoked');
});

test('an end that was stored is remembered as long as keys from before it may be used, and no longer', async () => {
  await end();
  const isEnded = () => endings.withEnds(supplier, active).get(kid)?.revokedAt !== null;
  await world.clock.advance(999);
  expect(isEnded()).toBe(true);
  await world.clock.advance(2);
  expect(isEnded()).toBe(false);
});
