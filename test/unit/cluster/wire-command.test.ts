import { describe, expect, test } from 'vitest';
import { commandOf, commandText } from '../../../cluster/peers/wire-command.ts';
import { UnreadableCommand } from '../../../cluster/peers/wire-fields.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import { actorKid } from '../../../src/domain/keys/signature.ts';
import type { Command, CommandSignature } from '../../../src/domain/ledger/command.ts';
import {
  append,
  buyer,
  closeLedger,
  closeMaster,
  commandKey,
  createMaster,
  grant,
  ledgerId,
  masterId,
  openingFacts,
  openLedger,
  revoke,
  siblingId,
  stranger,
  supplier,
  uuid,
} from '../../support/commands.ts';

const signedAs = (signedForm: string): CommandSignature => ({
  signature: Buffer.alloc(64, 7).toString('base64'),
  keyId: actorKid(supplier, 1),
  signedForm,
});

const submitted = { note: `${'é"'.repeat(100)}`, traceledger_master_uuid: masterId };
const payload = canonicalJson({ ...submitted, business_ref: 'PO-1', scope: 'ORDER', buyer_actor_id: buyer });
const cause = 'c'.repeat(64);
const grantRequest = canonicalJson({
  delegate_actor_id: uuid(0xd),
  permissions: { access: 'write' },
  role: 'OPS',
  traceledger_master_id: masterId,
});

/** A command of each kind and form that the service makes. */
const commands: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['an append without a signature', append({ payload, commandKeys: [commandKey('k'), commandKey('m', 'n', true)] })],
  ['an append signed as it stands', append({ payload, signature: signedAs(payload) })],
  ['an append signed as submitted', append({ payload, signature: signedAs(canonicalJson(submitted)) })],
  [
    'an append with a cause in a lane',
    append({
      payload: canonicalJson({ caused_by_hash: cause }),
      causedByHash: cause,
      lane: { id: 'lane', index: 4, previous: 2 },
      resubmitted: true,
      requestId: 'order-7.retry_2',
    }),
  ],
  ['an append at the head of a lane', append({ lane: { id: 'lane', index: 0, previous: null } })],
  ['the opening of an order', openLedger()],
  [
    'the opening of an organization',
    openLedger({
      facts: openingFacts('FACILITY_ROOT', { primaryActorId: supplier, organizationId: uuid(5) }),
      registeredPayload: '{"organization_id":"o"}',
    }),
  ],
  [
    'the opening of an engagement',
    openLedger({
      facts: openingFacts('ENGAGEMENT', { primaryActorId: supplier, counterpartyActorId: buyer, purpose: 'Audit' }),
    }),
  ],
  [
    'the creation of a master',
    createMaster({ signature: signedAs(canonicalJson({ business_ref: 'PO-1', ledger_id: ledgerId, scope: 'ORDER' })) }),
  ],
  [
    'the close of a master',
    closeMaster({
      signature: signedAs(
        canonicalJson({
          ledger_id: ledgerId,
          requested_by_actor_id: supplier,
          status: 'CLOSED',
          traceledger_master_uuid: masterId,
        }),
      ),
    }),
  ],
  [
    'the close of a ledger',
    closeLedger({
      signature: signedAs(canonicalJson({ ledger_id: ledgerId, requested_by_actor_id: supplier, status: 'CLOSED' })),
    }),
  ],
  ['a grant', grant({ access: 'write', signature: signedAs(grantRequest) })],
  ['a grant without permissions', grant({ scope: 'ledger', role: 'VIEWER' })],
  ['a grant that ends', grant({ role: 'ACCESS', access: 'read', expiresAt: '2030-01-01T00:00:00.000Z' })],
  [
    'a revocation',
    revoke({
      signature: signedAs(canonicalJson({ delegate_actor_id: uuid(0xd), traceledger_master_id: masterId })),
    }),
  ],
  ['a revocation by link', revoke({ delegateActorId: null, linkId: uuid(0xcc), signatureRule: 'optional' })],
]);

describe('a command for another node', () => {
  test.each([...commands])('arrives as it was sent: %s', (_, command) => {
    expect(commandOf(commandText(command))).toEqual(plain(command));
    // With the signed form written out, too.
    expect(commandOf(JSON.stringify(wireForm(command)))).toEqual(plain(command));
    expect(Object.keys(JSON.parse(commandText(command)) as object).sort()).toEqual(
      Object.keys(wireForm(command)).sort(),
    );
  });

  test('has a payload that equals the signed form only once', () => {
    const text = commandText(append({ payload, signature: signedAs(payload) }));
    expect(text.split(JSON.stringify(payload))).toHaveLength(2);
  });
});

/** Wrong values for all fields. */
const wrongForAll = [{ a: 1 }, [[]], 0.5, -1, 1e300, true, '\n', ' ', 'x'.repeat(1024 * 1024 + 1)];
/** Further wrong values, by field. */
const wrongFor: Readonly<Record<string, readonly unknown[]>> = {
  ledgerId: [null, 'A0000000-0000-7000-8000-000000000001', masterId.toUpperCase(), `${uuid(1)}\n`],
  actorId: [null, uuid(0xf1).toUpperCase()],
  actorType: [null, 'agent', 'SERVICE'],
  signatureRule: [null, 'never'],
  marks: [
    null,
    [commandKey('a'), commandKey('b'), commandKey('c')],
    [null],
    [{ ...commandKey('a'), permanent: 1 }],
    [{ id: 'a' }],
    [commandKey('\n')],
  ],
  deadline: [null, '1', Number.NaN],
  signature: [
    { ...signedAs(payload), keyId: 'svc:authority#key-1' },
    { ...signedAs(payload), keyId: actorKid(stranger, 1) },
    { ...signedAs(payload), signature: 'c2ln' },
    { ...signedAs(payload), signature: undefined },
    { ...signedAs(payload), signedForm: '{"b":1}' },
    { ...signedAs(payload), signedForm: 7 },
  ],
  requestId: [null, '', 'a\n', 'x'.repeat(129)],
  lane: [
    { id: 'l', index: 1, previous: 1 },
    { id: 'l', index: 1 },
    { id: '', index: 1, previous: null },
  ],
  masterId: [masterId.toUpperCase()],
  eventType: [null, 'GENESIS', 'MASTER_CLOSED', 'A B', 'A\n'],
  payload: [null, '[]', '{"b":1,"a":2}', '{ }', '{}\n', '{"a":1.0}', `{"caused_by_hash":"${'e'.repeat(64)}"}`],
  causedByHash: [cause.toUpperCase(), 'd'.repeat(64), 'c'.repeat(63)],
  businessRef: [null, 'a\nb', 'x'.repeat(257)],
  scope: [null, 'a\nb', 'world'],
  role: [null, 'a\nb'],
  linkId: [masterId.toUpperCase()],
  delegateActorId: [masterId.toUpperCase()],
  permissions: [null, '{ }', '[]', '{"access":"all"}'],
  requested: [null, '{}', '{ }'],
  expiresAt: ['2030-01-01T00:00:00Z', '2031-01-01T00:00:00.000Z'],
  registeredPayload: ['[]', '{ }', '{"b":1,"a":2}'],
  facts: [null, {}, openingFacts('ORDER', {}), { ...openingFacts('ORDER', {}), type: 'WORLD' }],
  kind: [null, 'drop_table', 'toString', '__proto__'],
};
/** Exceptions from `wrongForAll`. */
const right: Readonly<Record<string, readonly unknown[]>> = { resubmitted: [true], requestId: [' '] };
const mayBeMissing = new Set(['resubmitted', 'lane', 'requestId']);

describe('a command that this version cannot read', () => {
  const fields = [...commands].flatMap(([name, command]) =>
    Object.keys(wireForm(command)).map((field) => [name, field] as const),
  );

  test.each(fields)('%s is refused with a wrong %s, and without it', (name, field) => {
    const command = wireForm(commands.get(name));
    for (const value of [...wrongForAll, ...(wrongFor[field] ?? [])]) {
      if (right[field]?.includes(value)) continue;
      const changed = JSON.stringify({ ...command, [field]: value });
      expect(() => commandOf(changed), changed.slice(0, 2_000)).toThrow(UnreadableCommand);
    }
    const { [field]: _, ...without } = command;
    if (mayBeMissing.has(field)) expect(wireForm(commandOf(JSON.stringify(without)))).toEqual(without);
    else expect(() => commandOf(JSON.stringify(without))).toThrow(UnreadableCommand);
  });

  test.each([...commands])('is read without the fields that only another version knows: %s', (_, command) => {
    const more = { ...wireForm(command), tenant: 'x', ledger_id: stranger, __proto__x: 1 };
    expect(commandOf(JSON.stringify(more))).toEqual(plain(command));
    expect(commandOf(commandText(command).replace('{', '{"__proto__":{"kind":"revoke"},'))).toEqual(plain(command));
  });

  test.each(['', 'null', '{}', '[]', '{"kind":"append_event"', '{"kind":"drop_table","ledgerId":"a"}', '7'])(
    'is refused: %s',
    (text) => {
      expect(() => commandOf(text)).toThrow(UnreadableCommand);
    },
  );
});

describe('a command whose fields contradict each other', () => {
  const signed = (command: Command, signedForm: string): string =>
    JSON.stringify({ ...wireForm(command), signature: signedAs(signedForm) });

  test.each<readonly [string, string]>([
    ['another payload was signed', signed(append({ payload }), canonicalJson({ ...submitted, note: 'other' }))],
    ['less was signed', signed(append({ payload }), canonicalJson({ traceledger_master_uuid: masterId }))],
    ['more was signed', signed(append({ payload }), canonicalJson({ ...submitted, more: 1 }))],
    ['the signed form names no master', signed(append({ payload: '{"a":1,"scope":"X"}' }), '{"a":1}')],
    [
      'the payload names a sibling',
      JSON.stringify(wireForm(append({ payload: `{"traceledger_master_uuid":"${siblingId}"}` }))),
    ],
    ['nothing need be signed', JSON.stringify(wireForm(append({ signatureRule: 'optional' })))],
    ['no close need be signed', JSON.stringify(wireForm(closeMaster({ signatureRule: 'optional' })))],
    ['no grant need be signed', JSON.stringify(wireForm(grant({ signatureRule: 'optional' })))],
    ['no revocation need be signed', JSON.stringify(wireForm(revoke({ signatureRule: 'optional' })))],
    ['another role was asked for', JSON.stringify({ ...wireForm(grant({ role: 'VIEWER' })), role: 'OWNER' })],
    ['another delegate was asked for', JSON.stringify({ ...wireForm(grant()), delegateActorId: stranger })],
    ['another link was signed', signed(revoke({ delegateActorId: null, linkId: uuid(1) }), '{}')],
    ['an opening is signed', signed(openLedger(), '{}')],
  ])('is refused if %s', (_, text) => {
    expect(() => commandOf(text)).toThrow(UnreadableCommand);
  });
});

/** The JSON of a command as another node receives it. */
function wireForm(command: Command | undefined): Record<string, unknown> {
  const { commandKeys, ...rest } = plain(command);
  return { ...rest, marks: commandKeys };
}

function plain(command: Command | undefined): Record<string, unknown> {
  return JSON.parse(JSON.stringify(command)) as Record<string, unknown>;
}
