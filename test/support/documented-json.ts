import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The examples of a document: `<!-- example: NAME -->` and a block of JSON behind it. */
export function documentedJson(page: string): ReadonlyMap<string, unknown> {
  const text = readFileSync(join(resolve(import.meta.dirname, '../..'), page), 'utf8');
  const found = [...text.matchAll(/<!-- example: ([\w ]+) -->\n```json\n([\s\S]*?)```/g)];
  return new Map(found.map(([, name = '', json = '']) => [name, JSON.parse(json)]));
}

const patterns: readonly (readonly [string, RegExp])[] = [
  ['uuid', /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g],
  ['hash', /\b[0-9a-f]{64}\b/g],
  ['signature', /(?<=")[A-Za-z0-9+/]{86}==(?=")/g],
  ['key', /(?<=")[A-Za-z0-9+/]{43}=(?=")/g],
];

/**
 * Examples with every id, hash, signature and key as a number, in the order of their appearance by name. Two lists of
 * examples are the same if one is the other with other ids. Times all count as the same one.
 */
export function withoutChance(examples: ReadonlyMap<string, unknown>): unknown {
  let text = JSON.stringify(sorted(Object.fromEntries(examples)));
  for (const [what, pattern] of patterns) {
    const numbers = new Map<string, number>();
    text = text.replace(pattern, (found) => {
      const number = numbers.get(found) ?? numbers.size + 1;
      numbers.set(found, number);
      return `<${what} ${number}>`;
    });
  }
  text = text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>');
  return JSON.parse(text);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]));
}
