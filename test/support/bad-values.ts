import { JsonText } from './json-text.ts';

export interface BadValue {
  readonly value: unknown;
  readonly code: string;
  /** What details name behind the field, such as `[0]`; null: they name no field. */
  readonly part: string | null;
  /** What they name in place of the field. */
  readonly as?: string;
}

/** The values that a kind of field refuses, each for a reason of its own. */
export type Kind = readonly BadValue[];

const refusedAs = (code: string, part: string | null, values: readonly unknown[]): Kind =>
  values.map((value) => ({ value, code, part }));
export const refused = (...values: unknown[]): Kind => refusedAs('invalid_argument', '', values);

/** Of nobody and nothing. */
export const nobody = '0199aaaa-0000-7000-8000-00000000dead';
const id = nobody;

export const uuid = refused('', id.toUpperCase(), `svc:actor:${id}`);
/** Characters are counted as code points. */
/** A name in a query, where half a character cannot be said. */
export const nameInQuery = refused('', '\u{1f600}'.repeat(257), 'a\u0085b');
export const name = [
  ...nameInQuery,
  // Half a character, which only JSON's escapes can say.
  ...refusedAs('invalid_string', null, ['a\ud800']),
];
export const label = refused('', '9A', 'A.B', 'x'.repeat(65));
export const country = refused('', 'de', 'DEU', 'ＤＥ');
export const email = refused('', 'a', 'a@b@c.de', 'a b@c.de', `a@${'b'.repeat(300)}`);
export const url = refused(
  '',
  'example.com',
  'ftp://example.com/',
  'https://user:secret@example.com/',
  'https://example.com/a b',
  'https://example.com\\@x',
  `https://example.com/${'a'.repeat(2_029)}`,
);
/** What can be seen to lead to where no webhook goes. */
export const target = [...url, ...refused('http://8.8.8.8/', 'https://10.0.0.1/', 'https://[::ffff:127.0.0.1]/')];
export const eventType = refused('', '_A', 'A B', 'x'.repeat(129));
export const eventTypes = [
  ...refusedAs('invalid_argument', '[0]', [[''], ['no spaces'], ['x'.repeat(129)]]),
  ...refusedAs('invalid_argument', '[1]', [['A', 'Ä']]),
  ...refused(Array.from({ length: 101 }, (_, at) => `T${at}`)),
];
/** The twelve that the service writes, and that of test deliveries. */
const reservedTypes =
  `GENESIS ORDER_OPENED LEDGER_CLOSED ORGANIZATION_REGISTERED TRACELEDGER_MASTER_CREATED MASTER_CLOSED
  SUPPLIER_DELEGATION_GRANTED SUPPLIER_DELEGATION_REVOKED LEDGER_DELEGATION_GRANTED LEDGER_DELEGATION_REVOKED
  MASTER_DELEGATION_GRANTED MASTER_DELEGATION_REVOKED PING`.split(/\s+/);
export const callerEventType = [...eventType, ...refusedAs('reserved_event_type', '', reservedTypes)];

export const oneOf = (...others: readonly string[]): Kind => refused('', ...others);
export const limit = refused(0, 1_001);
export const offset = refused(-1, 100_001);
export const order = refused('', 'DESC');
export const seq = refused(-1, 2 ** 53);
/** How many events a tree covers. */
export const treeSize = refused(-1, 0, 2 ** 53);
/** Of an event behind which a stream begins. */
export const place = refused(-2, 2 ** 53);
export const cursor = refused('', 'x', Buffer.from('a-1').toString('base64url'));
export const time = refused(
  '',
  '2026-01-01',
  '2026-02-30T00:00:00Z',
  '2026-01-01T00:00:00',
  '2126-01-01T00:00:00.0123456789Z',
);
export const pastTime = '2020-01-01T00:00:00Z';

export const actorUri = refused('', id, `svc:actor:${id.toUpperCase()}`, `SVC:actor:${id}`);
/** Where a party is named; the resolver has an answer of its own for these. */
export const reservedUri = refused(`svc:entity:${id}`, 'svc:tlid:');
export const reservedNamespace = refusedAs('namespace_reserved', null, [
  `svc:entity:${id}`,
  'svc:ledger:x',
  'svc:tlid:',
]);
/** Any other name of a key names none. */
export const kid = [
  ...refused(''),
  ...refusedAs('not_found', '', ['key-0', 'key-01', 'key-99', `svc:actor:${id}#key-1`, 'svc:authority#key-1']),
];

const bytes = (hex: string) => Buffer.from(hex, 'hex').toString('base64');
export const publicKey = refusedAs('invalid_public_key', '', [
  '',
  // 31 bytes, padding left out, base64url, bits behind the last byte.
  bytes('07'.repeat(31)),
  '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
  '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURp=',
  // The neutral element, order 8, y not below p, no point at all.
  bytes(`01${'00'.repeat(31)}`),
  bytes('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05'),
  bytes(`ee${'ff'.repeat(30)}7f`),
  bytes(`02${'00'.repeat(31)}`),
]);

const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
const texts = (...values: readonly string[]) => values.map((value) => new JsonText(value));

/** JSON objects inside a request, as I-JSON has them: one text for each code, wherever such a field stands. */
const jsonObject = [
  ...refused([], 'text'),
  ...refusedAs('duplicate_key', null, texts('{"a":1,"\\u0061":2}')),
  ...refusedAs('unsafe_number', null, texts('{"a":9007199254740993}')),
  ...refusedAs('invalid_string', null, texts('{"a":"\\ud800"}')),
  ...refusedAs('too_deep', null, texts(deep(10_000))),
  ...refusedAs('invalid_json', null, texts('{')),
];
/** Without a credential a request has 28,000 parts at most. */
export const metadata = [
  ...jsonObject.filter(({ code }) => code !== 'too_deep'),
  ...refusedAs('too_deep', null, texts(deep(3_000))),
  ...refusedAs('payload_too_large', '', [{ text: 'x'.repeat(16 * 1024 - 10) }, { text: 'é'.repeat(8 * 1024 - 5) }]),
];
const causes = ['x', '', 1, {}, 'AB'.repeat(32), 'ab'.repeat(31), `${'ab'.repeat(32)}0`];
export const payload = [
  ...jsonObject,
  ...refusedAs('duplicate_key', null, texts('{"a":1,"a":2}', '{"x":{"__proto__":1,"__proto__":2}}')),
  ...refusedAs('unsafe_number', null, texts('{"a":1e400}', '{"a":1e-400}', '{"a":0.1000000000000000000001}')),
  ...refusedAs('invalid_string', null, texts('{"\\udfff":1}')),
  ...refusedAs('too_deep', null, texts(deep(64))),
  ...refusedAs('invalid_json', null, texts('{"a":01}', '{"a":"\n"}')),
  ...refusedAs(
    'invalid_argument',
    '.caused_by_hash',
    causes.map((caused_by_hash) => ({ caused_by_hash })),
  ),
  ...refusedAs('reserved_field', '.delivery_chain', [{ delivery_chain: [] }]),
  ...refusedAs('reserved_field', '.business_ref', [{ business_ref: 'other' }, { business_ref: 1 }]),
  ...refusedAs('reserved_field', '.traceledger_master_uuid', [{ traceledger_master_uuid: id }]),
  ...refusedAs('reserved_field', '.scope', [{ scope: null }]),
  ...refusedAs('reserved_field', '.supplier_actor_id', [{ supplier_actor_id: id }]),
  ...refusedAs('payload_too_large', '', [{ text: 'x'.repeat(262_144) }]),
];
export const permissions = [
  ...jsonObject,
  ...refusedAs(
    'invalid_argument',
    '.access',
    ['admin', '', 1, null, ['write']].map((access) => ({ access })),
  ),
  ...refusedAs('payload_too_large', '', [
    { text: 'x'.repeat(4 * 1024 - 10) },
    { text: 'é'.repeat(2 * 1024 - 5) },
    // Short as it is sent, long as it is stored.
    new JsonText(`{"a":[${Array(200).fill('1e20').join(',')}]}`),
  ]),
];

const link = { actor_id: id, actor_type: 'external', role: 'CARRIER' };
const chained = (...items: unknown[]) => JSON.stringify(items);
/** X-Delivery-Chain as text: the header, and the field of a stream; `part` is what stands behind its name. */
export const deliveryChain = [
  ...refused('{}', 'null', chained(...Array.from({ length: 17 }, () => link))),
  ...refusedAs('invalid_argument', '[0]', [chained({}), chained(1), chained({ ...link, extra: 1 })]),
  ...refusedAs('invalid_argument', '[1].actor_type', [chained(link, { ...link, actor_type: 'robot' })]),
  ...refusedAs('invalid_argument', '[0].actor_type', [chained({ ...link, actor_type: [['external']] })]),
  ...refusedAs('invalid_argument', '[0].actor_id', [chained({ ...link, actor_id: id.toUpperCase() })]),
  ...refusedAs('invalid_argument', '[0].role', [chained({ ...link, role: '9' })]),
  ...refusedAs('invalid_json', null, ['[', '']),
  ...refusedAs('duplicate_key', null, ['[{"role":"A","role":"B"}]']),
];
export const idempotencyKey = refused('', 'x'.repeat(256), 'ü', 'a\tb');

/** The kind of a header where it comes in a field: details name the header. */
export const named = (as: string, kind: Kind): Kind => kind.map((value) => ({ ...value, as }));
/** Any, of an actor that never had a key. */
export const signatureOfUnkeyed = refusedAs('unknown_signing_key', null, ['', 'x', `svc:actor:${id}#key-1`]);
