import { type DescField, ScalarType } from '@bufbuild/protobuf';
import { invalidField, refusedValue } from '../../domain/errors.ts';
import { noRestForm } from '../../service/encoding/json-field.ts';

const noParameters: readonly Parameter[] = [];

export interface Parameter {
  /** As it was sent if its percent-encoding is broken; with its value if it is empty. Neither names a field. */
  readonly name: string;
  /** Percent-encoded. */
  readonly value: string;
}

/** The parameters of a raw query, encoded like HTML forms. */
export function parametersOf(query: string): readonly Parameter[] {
  if (query === '') return noParameters;
  const pairs = query.split('&').filter((pair) => pair !== '');
  return pairs.map((pair) => {
    const [name = ''] = pair.split('=', 1);
    return { name: name === '' ? pair : (decodePart(name) ?? name), value: pair.slice(name.length + 1) };
  });
}

/**
 * Reads parameters into fields by their local names. Unknown parameters are passed over. A parameter that is given
 * twice, or has a value of another type, is `invalid_argument`.
 */
export function readQuery(
  fields: ReadonlyMap<string, DescField>,
  parameters: readonly Parameter[],
): Record<string, unknown> {
  const init: Record<string, unknown> = {};
  for (const { name, value: encoded } of parameters) {
    const field = fields.get(name);
    if (!field) continue;
    if (field.fieldKind !== 'scalar') throw noRestForm(field);
    if (Object.hasOwn(init, field.localName)) throw invalidField(field.name, 'given once');
    const value = decodePart(encoded);
    if (value === null) throw invalidField(field.name, 'percent-encoded UTF-8');
    init[field.localName] = readText(field, field.scalar, value);
  }
  return init;
}

/** Returns null if the percent-encoding is broken. */
function decodePart(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}

const INTEGER = /^(0|-?[1-9][0-9]{0,15})$/;

function readText(field: DescField, scalar: ScalarType, text: string): unknown {
  switch (scalar) {
    case ScalarType.STRING:
      return text;
    case ScalarType.BOOL:
      if (text !== 'true' && text !== 'false') throw refusedValue(field.name, text, 'true or false');
      return text === 'true';
    case ScalarType.INT32: {
      const value = Number(text);
      if (!INTEGER.test(text) || (value | 0) !== value) throw refusedValue(field.name, text, 'a 32-bit integer');
      return value;
    }
    case ScalarType.INT64:
      if (!INTEGER.test(text) || !Number.isSafeInteger(Number(text)))
        throw refusedValue(field.name, text, 'an integer');
      return BigInt(text);
    default:
      throw noRestForm(field);
  }
}
