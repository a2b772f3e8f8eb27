/** The little of CQL that the ledger store speaks, taken apart. */

export type Value = string | number | bigint | Buffer | null;
type Operator = '=' | '>=' | '<=' | 'IN';

/** A parameter, or a value that stands in the text. */
type Term = { readonly literal: Value } | null;

interface Part {
  readonly column: string;
  readonly operator: Operator;
  readonly term: Term;
}

interface SelectForm {
  readonly kind: 'select';
  readonly table: string;
  readonly columns: readonly string[];
  readonly where: readonly Part[];
  readonly descending: boolean;
  readonly limit: Term;
  readonly isLimited: boolean;
}

interface UpsertForm {
  readonly kind: 'upsert';
  readonly table: string;
  readonly set: readonly Part[];
  readonly where: readonly Part[];
  readonly condition: readonly Part[];
  readonly hasTimestamp: boolean;
}

export interface Test {
  readonly column: string;
  readonly operator: Operator;
  readonly value: unknown;
}

interface Select {
  readonly kind: 'select';
  readonly table: string;
  readonly columns: readonly string[];
  readonly where: readonly Test[];
  readonly descending: boolean;
  readonly limit: number;
}

/** INSERT and UPDATE alike. */
interface Upsert {
  readonly kind: 'upsert';
  readonly table: string;
  /** With those of the key. */
  readonly values: ReadonlyMap<string, Value>;
  readonly condition: readonly Test[];
  readonly timestamp: bigint | null;
}

const forms = new Map<string, SelectForm | UpsertForm>();

/** A statement with its parameters in their places. */
export function bindCql(cql: string, params: readonly unknown[]): Select | Upsert {
  let form = forms.get(cql);
  if (form === undefined) {
    form = parse(cql.trim());
    forms.set(cql, form);
  }
  let at = 0;
  const bound = (term: Term): unknown => (term === null ? params[at++] : term.literal);
  const test = ({ column, operator, term }: Part): Test => ({ column, operator, value: bound(term) });
  const { kind, table } = form;
  if (kind === 'select') {
    const where = form.where.map(test);
    const limit = form.isLimited ? Number(bound(form.limit)) : Number.POSITIVE_INFINITY;
    return { kind, table, columns: form.columns, where, descending: form.descending, limit };
  }
  const values = new Map<string, Value>();
  for (const { column, term } of form.set) values.set(column, bound(term) as Value);
  const timestamp = form.hasTimestamp ? BigInt(bound(null) as bigint) : null;
  for (const { column, term } of form.where) values.set(column, bound(term) as Value);
  return { kind, table, values, condition: form.condition.map(test), timestamp };
}

function parse(cql: string): SelectForm | UpsertForm {
  const select =
    /^SELECT (.+?) FROM (\w+) WHERE (.+?)(?: ORDER BY (?:\w+ DESC, )?\w+ (ASC|DESC))?(?: LIMIT (\?|\d+))?$/.exec(cql);
  if (select !== null) {
    const [, columns = '', table = '', where = '', order, limit] = select;
    return {
      kind: 'select',
      table,
      columns: columns.split(', '),
      where: where.split(' AND ').map(part),
      descending: order === 'DESC',
      limit: limit === undefined ? null : term(limit),
      isLimited: limit !== undefined,
    };
  }
  const insert = /^INSERT INTO (\w+) \((.+?)\) VALUES \((.+?)\)(?: USING TTL \d+)?( USING TIMESTAMP \?)?$/.exec(cql);
  if (insert !== null) {
    const [, table = '', columns = '', values = '', timestamp] = insert;
    const terms = values.split(', ').map(term);
    const set = columns.split(', ').map((column, at) => ({ column, operator: '=' as const, term: terms[at] ?? null }));
    return { kind: 'upsert', table, set, where: [], condition: [], hasTimestamp: timestamp !== undefined };
  }
  const update = /^UPDATE (\w+) SET (.+?) WHERE (.+?)(?: IF (.+))?$/.exec(cql);
  if (update !== null) {
    const [, table = '', set = '', where = '', test] = update;
    return {
      kind: 'upsert',
      table,
      set: set.split(', ').map(part),
      where: where.split(' AND ').map(part),
      condition: test === undefined ? [] : test.split(' AND ').map(part),
      hasTimestamp: false,
    };
  }
  throw new TypeError(`The simulated Cassandra does not know: ${cql}`);
}

function part(text: string): Part {
  const [, column, operator, value] = /^(\w+) (=|>=|<=|IN) (.+)$/.exec(text) ?? [];
  if (column === undefined || operator === undefined || value === undefined)
    throw new TypeError(`No condition: ${text}`);
  return { column, operator: operator as Operator, term: term(value) };
}

function term(text: string): Term {
  if (text === '?') return null;
  if (text === 'null') return { literal: null };
  if (/^-?\d+$/.test(text)) return { literal: Number(text) };
  const [, quoted] = /^'([^']*)'$/.exec(text) ?? [];
  if (quoted === undefined) throw new TypeError(`No value: ${text}`);
  return { literal: quoted };
}
