import { createHash } from 'node:crypto';
import { type DescField, ScalarType } from '@bufbuild/protobuf';
import { jsonRule } from '../../service/encoding/json-field.ts';

export type JsonObject = { [key: string]: unknown };

type TextFormat = 'uuid' | 'date-time' | 'email' | 'uri' | 'hex' | 'base64' | 'kid' | 'actor-uri' | 'text';

const KID_NAMES = new Set(['kid', 'signing_key_id', 'authority_key_id']);
const BASE64_NAMES = new Set(['public_key', 'actor_sig', 'authority_sig']);
const ACTOR_URI_NAMES = new Set(['svc_id', 'svc_uri', 'supplier_svc_id', 'buyer_svc_id']);

/** From the field's json rule if it has one, otherwise from its name. */
export function textFormat(field: DescField): TextFormat {
  const named = jsonRule(field).format;
  if (named !== '') return named as TextFormat;
  const { name } = field;
  if (KID_NAMES.has(name)) return 'kid';
  if (BASE64_NAMES.has(name)) return 'base64';
  if (ACTOR_URI_NAMES.has(name)) return 'actor-uri';
  if (name === 'id' || name === 'uuid' || /_(id|uuid)$/.test(name)) return 'uuid';
  if (name === 'at' || /_at$|^valid_(from|to)$/.test(name)) return 'date-time';
  if (name === 'hash' || name === 'fingerprint' || name.endsWith('_hash')) return 'hex';
  return 'text';
}

export function formatSchema(format: TextFormat): JsonObject {
  switch (format) {
    case 'uuid':
    case 'date-time':
    case 'email':
    case 'uri':
      return { format };
    case 'hex':
      return { pattern: '^[0-9a-f]{64}$' };
    case 'base64':
      return { contentEncoding: 'base64' };
    case 'actor-uri':
      return { pattern: '^svc:actor:[0-9a-f-]{36}$' };
    case 'kid':
    case 'text':
      return {};
  }
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
    case 'hex':
      return createHash('sha256').update(name).digest('hex');
    case 'base64':
      return name.endsWith('_sig') ? EXAMPLE_SIGNATURE : EXAMPLE_PUBLIC_KEY;
    case 'kid':
      return `svc:actor:${exampleUuid('actor_id')}#key-1`;
    case 'actor-uri':
      return `svc:actor:${exampleUuid('actor_id')}`;
    case 'text':
      return name.replaceAll('_', ' ');
  }
}

/** Returns a UUIDv7 that is different for each field name. */
function exampleUuid(name: string): string {
  const hex = createHash('sha256').update(name).digest('hex');
  return `01997f3e-5a10-7${hex.slice(0, 3)}-9${hex.slice(3, 6)}-${hex.slice(6, 18)}`;
}
