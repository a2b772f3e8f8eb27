/** A parsed JSON value, with the canonical text (RFC 8785) of each of its parts. */
export type JsonNode = JsonObject | JsonArray | JsonString | JsonNumber | JsonBoolean | JsonNull;

export interface JsonObject {
  readonly kind: 'object';
  readonly canonical: string;
  /** In canonical order: by UTF-16 code units. No two have the same name. */
  readonly members: readonly JsonMember[];
}

export interface JsonMember {
  readonly name: string;
  readonly quoted: string;
  /** Where the name begins in the text, in UTF-16 code units. */
  readonly offset: number;
  readonly value: JsonNode;
}

export interface JsonArray {
  readonly kind: 'array';
  readonly canonical: string;
  readonly items: readonly JsonNode[];
}

export interface JsonString {
  readonly kind: 'string';
  readonly canonical: string;
  readonly value: string;
}

export interface JsonNumber {
  readonly kind: 'number';
  readonly canonical: string;
  readonly value: number;
}

export interface JsonBoolean {
  readonly kind: 'boolean';
  readonly canonical: 'true' | 'false';
  readonly value: boolean;
}

export interface JsonNull {
  readonly kind: 'null';
  readonly canonical: 'null';
  readonly value: null;
}

export function memberOf(object: JsonObject, name: string): JsonNode | undefined {
  const { members } = object;
  let from = 0;
  let to = members.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    const member = members[middle];
    if (member === undefined) break;
    if (member.name === name) return member.value;
    if (member.name < name) from = middle + 1;
    else to = middle;
  }
  return undefined;
}
