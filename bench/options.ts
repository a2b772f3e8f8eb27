import { parseArgs } from 'node:util';

export const transports = ['stream', 'grpc', 'rest'] as const;
export type Transport = (typeof transports)[number];

export interface BenchOptions {
  readonly transports: readonly Transport[];
  /** How many ledgers the events of a run go to: one hot ledger, or a hundred. */
  readonly ledgerCounts: readonly number[];
  /** Events of a run. */
  readonly events: number;
  /** The run of a million events on one ledger, with its memory and its pages. */
  readonly memory: boolean;
  /** Three nodes on one Cassandra, in place of one node alone. */
  readonly cluster: boolean;
  /** Where the JSON goes beside standard output; null: nowhere else. */
  readonly jsonFile: string | null;
  /** Whether everything is read back and verified afterwards. */
  readonly verified: boolean;
  /** Where the server writes CPU profiles; null: none. */
  readonly profileDir: string | null;
}

export const benchUsage = `npm run bench -- [options]
  --quick               20,000 events a run instead of 100,000
  --only rest|grpc|stream
  --ledgers 1|100       one hot ledger, or a hundred; both if left out
  --events N            events of a run
  --cluster             three nodes on one Cassandra: streams alone, 90,000 events a run
  --memory              a million events on one ledger: memory, and reading pages of 1,000
  --json FILE           writes the result there too
  --profile DIR         the server writes CPU profiles there (slows it down)
  --unverified          reads nothing back: for profiles of the appends alone
  --help`;

/** Reads the command line; throws Error with the usage for one that means nothing. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      ledgers: { type: 'string' },
      events: { type: 'string' },
      memory: { type: 'boolean', default: false },
      cluster: { type: 'boolean', default: false },
      json: { type: 'string' },
      profile: { type: 'string' },
      unverified: { type: 'boolean', default: false },
    },
  });
  const only = transports.filter((transport) => values.only === undefined || values.only === transport);
  const byDefault = values.memory ? 1_000_000 : values.quick ? 20_000 : values.cluster ? 90_000 : 100_000;
  const events = Number(values.events ?? byDefault);
  const ledgers = values.ledgers === undefined ? [1, 100] : [Number(values.ledgers)];
  if (only.length === 0 || !Number.isInteger(events) || events < 1_600 || !ledgers.every((n) => n === 1 || n === 100)) {
    throw new Error(benchUsage);
  }
  return {
    transports: values.memory ? ['stream'] : only,
    ledgerCounts: values.memory ? [1] : ledgers,
    events,
    memory: values.memory,
    cluster: values.cluster,
    jsonFile: values.json ?? null,
    profileDir: values.profile ?? null,
    verified: !values.unverified,
  };
}
