import { LedgerError } from '../errors.ts';
import { byCodeUnits } from './canonical.ts';
import type { JsonArray, JsonBoolean, JsonMember, JsonNode, JsonNull, JsonObject } from './json-node.ts';
import { END, isDigit, JsonScanner, MINUS, QUOTE } from './json-scanner.ts';

const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const TRUE: JsonBoolean = { kind: 'boolean', canonical: 'true', value: true };
const FALSE: JsonBoolean = { kind: 'boolean', canonical: 'false', value: false };
const NULL: JsonNull = { kind: 'null', canonical: 'null', value: null };

/**
 * Parses a whole text without lone surrogates. Each level of nesting takes one of the stack: `maxDepth` bounds both.
 * `maxValues` bounds time and memory.
 */
export class JsonReader extends JsonScanner {
  readonly #maxDepth: number;
  readonly #maxValues: number;
  #values = 0;

  constructor(text: string, maxDepth: number, maxValues: number) {
    super(text);
    this.#maxDepth = maxDepth;
    this.#maxValues = maxValues;
  }

  readAll(): JsonNode {
    const node = this.#readValue(this.next(), 0);
    if (this.next() !== END) throw this.unexpected('the end of the JSON text');
    return node;
  }

  #readValue(code: number, depth: number): JsonNode {
    this.#values += 1;
    if (this.#values > this.#maxValues) throw tooManyValues(this.#maxValues);
    if (code === QUOTE) return this.readString();
    if (code === OPEN_BRACE) return this.#readObject(depth + 1);
    if (code === OPEN_BRACKET) return this.#readArray(depth + 1);
    if (code === MINUS || isDigit(code)) return this.readNumber();
    if (this.readWord('true')) return TRUE;
    if (this.readWord('false')) return FALSE;
    if (this.readWord('null')) return NULL;
    throw this.unexpected('a value');
  }

  #readObject(depth: number): JsonObject {
    const { start, changes } = this.#enter(depth);
    const members: JsonMember[] = [];
    if (this.next() === CLOSE_BRACE) {
      this.at += 1;
      return { kind: 'object', canonical: '{}', members };
    }
    let last: JsonMember | null = null;
    let inOrder = true;
    for (;;) {
      if (this.next() !== QUOTE) throw this.unexpected('a member name in double quotes');
      const offset = this.at;
      const { canonical: quoted, value: name } = this.readString();
      if (this.next() !== COLON) throw this.unexpected('a colon');
      this.at += 1;
      const member: JsonMember = { name, quoted, offset, value: this.#readValue(this.next(), depth) };
      inOrder &&= last === null || last.name < name;
      members.push(member);
      last = member;
      const code = this.next();
      if (code !== COMMA && code !== CLOSE_BRACE) throw this.unexpected('a comma or the end of the object');
      this.at += 1;
      if (code === CLOSE_BRACE) break;
    }
    if (!inOrder) {
      this.changes += 1;
      sortMembers(members);
    }
    const canonical = this.changes === changes ? this.text.slice(start, this.at) : joinMembers(members);
    return { kind: 'object', canonical, members };
  }

  #readArray(depth: number): JsonArray {
    const { start, changes } = this.#enter(depth);
    const items: JsonNode[] = [];
    if (this.next() === CLOSE_BRACKET) {
      this.at += 1;
      return { kind: 'array', canonical: '[]', items };
    }
    for (;;) {
      items.push(this.#readValue(this.next(), depth));
      const code = this.next();
      if (code !== COMMA && code !== CLOSE_BRACKET) throw this.unexpected('a comma or the end of the array');
      this.at += 1;
      if (code === CLOSE_BRACKET) break;
    }
    const canonical = this.changes === changes ? this.text.slice(start, this.at) : joinItems(items);
    return { kind: 'array', canonical, items };
  }

  /** Returns where the object or array starts, and the number of changes before it. */
  #enter(depth: number): { readonly start: number; readonly changes: number } {
    const start = this.at;
    if (depth > this.#maxDepth) {
      throw new LedgerError('too_deep', `Objects and arrays may be nested ${this.#maxDepth} deep at most.`, {
        limit: this.#maxDepth,
        offset: start,
      });
    }
    this.at = start + 1;
    return { start, changes: this.changes };
  }
}

/** Throws `duplicate_key` if two members have the same name. */
function sortMembers(members: JsonMember[]): void {
  members.sort((left, right) => byCodeUnits(left.name, right.name));
  for (let at = 1; at < members.length; at += 1) {
    const [before, member] = [members[at - 1], members[at]];
    if (before !== undefined && member !== undefined && before.name === member.name) {
      throw duplicateKey(member.name, Math.max(before.offset, member.offset));
    }
  }
}

function joinMembers(members: readonly JsonMember[]): string {
  let canonical = '{';
  for (let at = 0; at < members.length; at += 1) {
    const { quoted, value } = members[at] as JsonMember;
    canonical += at === 0 ? `${quoted}:${value.canonical}` : `,${quoted}:${value.canonical}`;
  }
  return `${canonical}}`;
}

function joinItems(items: readonly JsonNode[]): string {
  let canonical = '[';
  for (let at = 0; at < items.length; at += 1) {
    const item = items[at] as JsonNode;
    canonical += at === 0 ? item.canonical : `,${item.canonical}`;
  }
  return `${canonical}]`;
}

function tooManyValues(limit: number): LedgerError {
  return new LedgerError('payload_too_large', `A request may have ${limit} JSON values.`, { limit });
}

function duplicateKey(key: string, offset: number): LedgerError {
  return new LedgerError('duplicate_key', 'An object has two members of the same name.', { key, offset });
}
