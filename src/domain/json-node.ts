/** What JSON text says, with the canonical text (RFC 8785) of every part of it. */
export type JsonNode = JsonObject | JsonArray | JsonString | JsonNumber | JsonBoolean | JsonNull;

export interface JsonObject {
  readonly kind: 'object';
  readonly canonical: string;
  /** In the order written. */
  readonly members: ReadonlyMap<string, JsonNode>;
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
