import { createHash } from 'node:crypto';
import { type DescField, ScalarType } from '@bufbuild/protobuf';
import { base64Form } from '../../domain/keys/base64.ts';
import { sha256HexForm } from '../../domain/keys/hash.ts';
import { publicKeyForm } from '../../domain/keys/public-key.ts';
import { actorKidForm, authorityKidForm, pathKidForm, signatureForm } from '../../domain/keys/signature.ts';
import { HASH_BYTES } from '../../domain/log/tree.ts';
import {
  countryForm,
  emailMaxChars,
  eventTypeForm,
  labelForm,
  nameForm,
  nameMaxChars,
  urlForm,
  urlMaxChars,
} from '../../domain/values/fields.ts';
import { actorUriForm, resolvableUriForm } from '../../domain/values/svc-uri.ts';
import { rfc3339Form } from '../../domain/values/time.ts';
import { uuidForm } from '../../domain/values/uuid-form.ts';
import { cursorForm } from '../../service/calls/list-cursor.ts';
import { jsonRule } from '../../service/encoding/json-field.ts';

export type JsonObject = { [key: string]: unknown };

/** Each kind of text, as a schema. Patterns are those that the service itself checks. */
const textFormats = {
  uuid: { format: 'uuid', pattern: uuidForm.source },
  // Generators make dates of this, so that a pattern of the text would only be in their way.
  'date-time': { format: 'date-time' },
  // The service's rule knows letters of all scripts, which no pattern of every language does.
  email: { format: 'email', minLength: 'a@b'.length, maxLength: emailMaxChars },
  uri: { format: 'uri', pattern: urlForm.source, maxLength: urlMaxChars },
  hash: { pattern: sha256HexForm.source },
  // Empty on the first event of a ledger.
  'prev-hash': { pattern: '^([0-9a-f]{64})?$' },
  'tree-hash': { pattern: base64Form(HASH_BYTES).source },
  'public-key': { pattern: publicKeyForm.source },
  signature: { pattern: signatureForm.source },
  'actor-kid': { pattern: actorKidForm.source },
  'authority-kid': { pattern: authorityKidForm.source },
  'actor-uri': { pattern: actorUriForm.source },
  'event-type': { pattern: eventTypeForm.source },
  name: { pattern: nameForm.source, minLength: 1, maxLength: nameMaxChars },
  label: { pattern: labelForm.source },
  country: { pattern: countryForm.source },
  cursor: { pattern: cursorForm.source },
  text: {},
} as const satisfies { readonly [format: string]: JsonObject };

type TextFormat = keyof typeof textFormats;

const formatsByName: { readonly [name: string]: TextFormat } = {
  kid: 'actor-kid',
  signing_key_id: 'actor-kid',
  authority_key_id: 'authority-kid',
  public_key: 'public-key',
  actor_sig: 'signature',
  authority_sig: 'signature',
  svc_id: 'actor-uri',
  svc_uri: 'actor-uri',
  supplier_svc_id: 'actor-uri',
  buyer_svc_id: 'actor-uri',
  event_type: 'event-type',
  event_types: 'event-type',
  cursor: 'cursor',
  next_cursor: 'cursor',
};

/** From the field's json rule if it has one, otherwise from its name. */
export function textFormat(field: DescField): TextFormat {
  const named = jsonRule(field).format;
  if (isTextFormat(named)) return named;
  if (named !== '') throw new Error(`${field.parent.typeName}.${field.name} has the unknown format ${named}`);
  const { name } = field;
  const known = formatsByName[name];
  if (known !== undefined) return known;
  if (name === 'id' || name === 'uuid' || /_(id|uuid)$/.test(name)) return 'uuid';
  if (name === 'at' || /_at$|^valid_(from|to)$/.test(name)) return 'date-time';
  if (name === 'hash' || name === 'fingerprint' || name.endsWith('_hash')) return 'hash';
  return 'text';
}

function isTextFormat(text: string): text is TextFormat {
  return Object.hasOwn(textFormats, text);
}

export function formatSchema(format: TextFormat): JsonObject {
  return { ...textFormats[format] };
}

/** Paths take more than the fields of the same names. */
const pathForms: { readonly [name: string]: RegExp } = { svc_uri: resolvableUriForm, kid: pathKidForm };

/**
 * The schema of a parameter in the path or the query. Times of a query are text there: some generators send dates in a
 * form that is not RFC 3339 (`+0000`).
 */
export function parameterSchema(name: string, inPath: boolean, schema: JsonObject): JsonObject {
  const form = inPath ? pathForms[name] : undefined;
  if (form !== undefined) return { type: 'string', pattern: form.source };
  return schema.format === 'date-time' ? { type: 'string', pattern: rfc3339Form.source } : schema;
}

/** A public key and a signature of the right form: RFC 8032, section 7.1, test 1. */
const EXAMPLE_PUBLIC_KEY = '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=';
const EXAMPLE_SIGNATURE = '5VZDAMNgrHKQhuLMgG6CioSHfx645dl02HPgZSJJAVVfuIIVkKM7rMYeOXAc+bRr0lv18FlbviRlUUFDjnoQCw==';

/** Returns an example of a field's value as JSON, the same one each time. */
export function exampleOf(field: DescField, scalar: ScalarType): unknown {
  const { example, values, raw } = jsonRule(field);
  if (scalar === ScalarType.STRING && !raw && example !== 'null') return example || values[0] || exampleText(field);
  if (example !== '') return JSON.parse(example);
  if (scalar === ScalarType.BOOL) return false;
  return raw ? {} : 0;
}

function exampleText(field: DescField): string {
  const { name } = field;
  switch (textFormat(field)) {
    case 'uuid':
      return exampleUuid(name);
    case 'date-time':
      return '2026-11-21T02:06:39.123Z';
    case 'email':
      return 'office@acme.example';
    case 'uri':
      return 'https://acme.example';
    case 'hash':
    case 'prev-hash':
      return createHash('sha256').update(name).digest('hex');
    case 'public-key':
      return EXAMPLE_PUBLIC_KEY;
    case 'signature':
      return EXAMPLE_SIGNATURE;
    case 'authority-kid':
      return 'svc:authority#key-1';
    case 'actor-kid':
      return `svc:actor:${exampleUuid('actor_id')}#key-1`;
    case 'actor-uri':
      return `svc:actor:${exampleUuid('actor_id')}`;
    default:
      return name.replaceAll('_', ' ');
  }
}

/** Returns a UUIDv7 that is different for each field name. */
function exampleUuid(name: string): string {
  const hex = createHash('sha256').update(name).digest('hex');
  return `01997f3e-5a10-7${hex.slice(0, 3)}-9${hex.slice(3, 6)}-${hex.slice(6, 18)}`;
}
