import { type DescField, type DescMethod, ScalarType } from '@bufbuild/protobuf';
import { restRoutes } from '../../src/rpc/endpoints/routes.ts';
import { isOptional, jsonRule } from '../../src/service/encoding/json-field.ts';
import { apiMethods, methodNamed } from './access-transports.ts';
import { type Kind, nobody, pastTime } from './bad-values.ts';
import { inputTable } from './input-table.ts';
import { refusal } from './input-transports.ts';
import { JsonText } from './json-text.ts';
import type { Fields } from './parties-rest.ts';

type Headers = Readonly<Record<string, string>>;

/** A call that is to be refused: a good one but for this. */
export interface InputCase {
  /** `Service.Method` */
  readonly method: string;
  /** Fields in place of those of the good request; undefined: left out. */
  readonly change: Fields;
  /** The fields in place of the good request. */
  readonly of?: Fields;
  /** Added to the headers of the caller. */
  readonly headers?: Headers;
  /** In place of the headers of the caller. */
  readonly by?: Headers;
  /** The transports of the case; all by default. */
  readonly at?: readonly string[];
  /** As transports tell it: `invalid_argument of name`. */
  readonly expected: string;
}

const scopes = ['organization_id', 'ledger_id', 'master_id'];
/** Fields of which a request has one. */
const exclusive: Readonly<Record<string, readonly string[]>> = {
  'DelegationService.GetDelegationSnapshot': scopes,
  'DelegationService.GetDelegationProof': scopes,
  'ProofService.GetLedgerInclusion': ['seq', 'event_id'],
  'ProofService.GetMasterInclusion': ['master_seq', 'event_id'],
};

/** A field in place of the good one, and of those that may not stand beside it. */
function changed(method: string, field: string, value: unknown): Fields {
  const others = exclusive[method] ?? [];
  const left = others.includes(field) ? Object.fromEntries(others.map((name) => [name, undefined])) : {};
  return { ...left, [field]: value };
}

export function tableCases(): InputCase[] {
  return Object.entries(inputTable).flatMap(([method, fields]) =>
    Object.entries(fields).flatMap(([field, kind]) =>
      kind.map(({ value, code, part, as = field }) => ({
        method,
        change: changed(method, field, value),
        expected: refusal(
          code,
          part === null ? null : as + part,
          isEmpty(value) && isToldMissing(code, as) ? 'missing' : undefined,
        ),
      })),
    ),
  );
}

/** Fields that must be there are left out, each by itself. */
export function absenceCases(): InputCase[] {
  return eachField((method, field) => {
    const kind = inputTable[method]?.[field.name];
    if (kind === undefined || field.fieldKind !== 'scalar' || isOptional(field)) return [];
    return [{ method, change: changed(method, field.name, undefined), expected: refusalOfEmpty(field.name, kind) }];
  });
}

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** What is told by what is there, and so comes behind the fields. */
function isTold({ method, change, expected }: InputCase): boolean {
  return (
    /^(not_found|reserved_field|unknown_signing_key)/.test(expected) ||
    // Whether a time has passed, the ledger's clock tells.
    (method === 'MasterService.GrantMasterAccess' && change.expires_at === pastTime)
  );
}

/**
 * Fields come before what the caller may see or do: the same refusals, of calls about what
 * does not exist. The services check, whatever the transport, so one is enough.
 */
export function orderCases(good: (method: string) => Fields): InputCase[] {
  const aboutNothing = (fields: Fields): Fields =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [
        name,
        typeof value === 'string' ? value.replaceAll(UUID, nobody) : value,
      ]),
    );
  return [...tableCases(), ...absenceCases()]
    .filter((one) => !isTold(one))
    .map((one) => ({ ...one, of: aboutNothing(good(one.method)), at: ['gRPC', 'AppendEvents'] }));
}

/** What is left out is refused as what is empty. */
function refusalOfEmpty(field: string, kind: Kind): string {
  const empty = kind.find(({ value }) => value === '');
  return refusal(empty?.code ?? 'invalid_argument', field, 'missing');
}

/** Whether the value, or the one item or member of it, is the empty text. */
function isEmpty(value: unknown): boolean {
  if (value instanceof JsonText || typeof value !== 'object' || value === null) return value === '';
  return Object.values(value).length === 1 && Object.values(value)[0] === '';
}

/** Whether an empty text is told to be missing. What is also a header has sentences of its own. */
function isToldMissing(code: string, field: string): boolean {
  return !field.includes('-') && ['invalid_argument', 'invalid_public_key'].includes(code);
}

/** Those that can be called with JSON. */
const unaryMethods = [...apiMethods.keys()].filter((method) => methodNamed(method).methodKind === 'unary');

/** Values of another JSON type than the field's, for the transports that take JSON, and for queries. */
export function typeCases(): InputCase[] {
  return eachField((method, field) =>
    (unaryMethods.includes(method) ? wrongTypes(field, takesNull(method, field)) : []).map((value) => ({
      method,
      change: changed(method, field.name, value),
      expected: refusal('invalid_argument', field.name),
    })),
  );
}

/** Whether null can be said of the field, in a body of REST, and is not the same as left out. */
function takesNull(method: string, field: DescField): boolean {
  const route = restRoutes().find((candidate) => candidate.method === methodNamed(method));
  const inBody = route?.hasBody === true && !route.pathParams.includes(field.name);
  return inBody && !isOptional(field) && field.fieldKind !== 'list';
}

function wrongTypes(field: DescField, withNull: boolean): unknown[] {
  if (jsonRule(field).raw) return [];
  const nulls = withNull ? [null] : [];
  if (field.fieldKind === 'list') return ['A', { 0: 'A' }];
  switch (field.fieldKind === 'scalar' ? field.scalar : null) {
    case ScalarType.STRING:
      return [7, ...nulls];
    case ScalarType.BOOL:
      return ['yes', 1, ...nulls];
    case ScalarType.INT32:
      return ['x', 2 ** 31, ...nulls];
    case ScalarType.INT64:
      return ['x', 1.5, ...nulls];
    default:
      throw new Error(`${field.parent.typeName}.${field.name} is of a type that no request had`);
  }
}

/** A misspelt field must not be passed over. */
export function unknownFieldCases(): InputCase[] {
  return unaryMethods.flatMap((method) =>
    ['nonsense', '__proto__'].map((name) => ({
      method,
      change: Object.fromEntries([[name, 1]]),
      expected: refusal('invalid_argument', name),
    })),
  );
}

function eachField(casesOf: (method: string, field: DescField) => InputCase[]): InputCase[] {
  return requestFields().flatMap(({ method, field }) => casesOf(method, field));
}

export function requestFields(): { readonly method: string; readonly field: DescField }[] {
  return [...apiMethods.keys()].flatMap((method) => {
    const { input }: DescMethod = methodNamed(method);
    return input.fields.map((field) => ({ method, field }));
  });
}
