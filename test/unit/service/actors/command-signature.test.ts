import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { signDigest } from '../../../../src/domain/keys/key-object.ts';
import { actorKid, sigDigest } from '../../../../src/domain/keys/signature.ts';
import { type Command, commandEventType } from '../../../../src/domain/ledger/command.ts';
import { checkCommandSignature } from '../../../../src/service/actors/command-signature.ts';
import type { Identities } from '../../../../src/service/actors/identities.ts';
import { enrolKey } from '../../../../src/service/actors/signing-keys.ts';
import { bareActor } from '../../../support/actor-record.ts';
import {
  append,
  closeLedger,
  closeMaster,
  createMaster,
  grant,
  revoke,
  supplier,
  uuid,
} from '../../../support/commands.ts';
import { identitiesIn } from '../../../support/identities.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';
import { codeOf } from '../../../support/world.ts';

const startMs = 1_800_000_000_000;
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const kid = actorKid(supplier, 1);

/** What a node that owns ledgers knows of the supplier, whose key was enrolled on another node. */
async function owner(): Promise<Identities> {
  const store = new MemoryRecordStore();
  const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64');
  await identitiesIn(store, () => startMs).create(enrolKey(bareActor(supplier), raw, startMs));
  return identitiesIn(store, () => startMs);
}

function signed<T extends Command>(command: T, form = '{"a":1}', signedAs: Command = command): T {
  const signature = signDigest(sigDigest(commandEventType(signedAs), signedAs.ledgerId, form), privateKey);
  return { ...command, signature: { signature, keyId: kid, signedForm: form } };
}

const commands = [append(), createMaster(), closeMaster(), closeLedger(), grant(), revoke({ scope: 'ledger' })];

test.each(commands.map((command) => [command.kind, command] as const))(
  'the signature of a command of another node is checked: %s',
  async (_, command) => {
    const identities = await owner();
    const check = (one: Command) => codeOf(checkCommandSignature(identities, one));
    expect(await check(command)).toBe('carried out');
    expect(await check(signed(command))).toBe('carried out');
    const { signature } = signed(command);
    if (signature === null) throw new Error('not signed');
    expect(await check({ ...command, signature: { ...signature, signedForm: '{"a":2}' } })).toBe('invalid_signature');
    expect(await check({ ...command, signature: { ...signature, keyId: actorKid(supplier, 2) } })).toBe(
      'unknown_signing_key',
    );
    expect(await check(signed(command, '{}', { ...command, ledgerId: uuid(9) }))).toBe('invalid_signature');
    expect(await check(signed(command, '{}', append({ eventType: 'OTHER' })))).toBe('invalid_signature');
    expect(await check({ ...signed(command), actorId: uuid(9) })).toBe('unknown_signing_key');
  },
);
