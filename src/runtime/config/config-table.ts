/** As the documentation shows it. */
export interface ConfigVariable {
  readonly name: string;
  /** In words if it is no fixed value. */
  readonly default: string;
  readonly meaning: string;
}

const perMode = (production: number): string => `0 in development mode, ${production} in production mode`;

/** All variables. The table in the documentation is made from this one. */
export const configTable: readonly ConfigVariable[] = Object.freeze([
  {
    name: 'SVC_MODE',
    default: 'development',
    meaning:
      '`development` or `production`. Production mode refuses to start on an incomplete or unsafe configuration.',
  },
  { name: 'HOST', default: '0.0.0.0', meaning: 'Address that the two public ports listen on.' },
  { name: 'PORT', default: '8080', meaning: 'HTTP port: REST, Connect, gRPC-Web, documentation, health.' },
  { name: 'GRPC_PORT', default: '50051', meaning: 'gRPC port.' },
  {
    name: 'OPS_HOST',
    default: '127.0.0.1',
    meaning: 'Address that the internal port listens on; in production mode a loopback one.',
  },
  { name: 'OPS_PORT', default: '9100', meaning: 'Internal port: metrics, liveness, readiness.' },
  { name: 'DATA_DIR', default: './data', meaning: 'Directory of the embedded store and of keys made on first start.' },
  {
    name: 'AUTHORITY_KEY_FILE',
    default: 'made on first start; required in production',
    meaning: 'Ed25519 private key of the authority, PKCS#8 PEM.',
  },
  {
    name: 'SECRETS_KEY_FILE',
    default: 'made on first start; required in production',
    meaning:
      'Key that encrypts webhook secrets and stored answers, and authenticates snapshots: 32 bytes in base64. It cannot be changed.',
  },
  {
    name: 'LOG_ORIGIN',
    default: '`localhost/dev-` and 8 random hex digits; required in production',
    meaning:
      'Name of the service in its checkpoints: the base URL of the API without its scheme, such as `ledger.example/v1`. Change it by `log new-origin` alone.',
  },
  {
    name: 'LOG_KEY_FILE',
    default: 'made on first start (in a cluster: from SECRETS_KEY_FILE); required in production',
    meaning: 'Ed25519 private key that signs checkpoints, PKCS#8 PEM; not that of the authority.',
  },
  {
    name: 'TLS_CERT_FILE',
    default: 'none',
    meaning: 'Certificate chain, PEM. With TLS_KEY_FILE, both public ports speak TLS.',
  },
  { name: 'TLS_KEY_FILE', default: 'none', meaning: 'Private key of the certificate, PEM.' },
  {
    name: 'TLS_TERMINATED',
    default: '0',
    meaning: '`1`: something in front of the service speaks TLS. Production mode asks for this or the two files above.',
  },
  {
    name: 'CORS_ORIGINS',
    default: 'none',
    meaning: 'Origins whose pages may call the HTTP port, separated by commas, or `*`, which production mode refuses.',
  },
  {
    name: 'TRUSTED_PROXIES',
    default: 'none',
    meaning: 'Addresses or networks (such as `10.0.0.0/8`), separated by commas, whose X-Forwarded-For is believed.',
  },
  {
    name: 'LOG_LEVEL',
    default: 'info',
    meaning: '`fatal`, `error`, `warn`, `info` (a line a request), `debug` or `silent`.',
  },
  {
    name: 'WEBHOOK_CLOSED_PORTS',
    default: 'none',
    meaning:
      'Ports on loopback, separated by commas, that no webhook goes to in development mode; those of this service, its nodes, its Redis and Cassandra are closed without being named.',
  },
  {
    name: 'RATE_LIMIT_CREATE_PER_MINUTE',
    default: perMode(600),
    meaning: 'Calls a minute and address that create something without a credential. 0: no limit.',
  },
  { name: 'RATE_LIMIT_CREATE_BURST', default: '300', meaning: 'How many of them may come at once.' },
  {
    name: 'RATE_LIMIT_CALL_PER_SECOND',
    default: perMode(200),
    meaning:
      'Calls a second for each API key, appends not counted. Costs beyond one call share one rate for all keys of an actor. Callers whose identity is not verified share ten times this rate for each address. 0: no limit.',
  },
  { name: 'RATE_LIMIT_CALL_BURST', default: '500', meaning: 'How many of them may come at once.' },
  {
    name: 'RATE_LIMIT_APPEND_PER_SECOND',
    default: perMode(5000),
    meaning:
      'Appends a second for each API key; opening a stream is one. Costs of appends and of events of streams beyond one call share one rate for all keys of an actor. Callers whose identity is not verified share ten times this rate for each address. 0: no limit.',
  },
  { name: 'RATE_LIMIT_APPEND_BURST', default: '5000', meaning: 'How many of them may come at once.' },
  {
    name: 'MEMORY_BUDGET_MIB',
    default: 'a quarter of the memory or of the heap limit, whichever is smaller; at most 256',
    meaning: 'What requests, answers, reads and streams may hold in memory together. Beyond it calls are `overloaded`.',
  },
  {
    name: 'CONNECTIONS_MAX',
    default: 'one for each 16 KiB of the memory budget; at most 20000',
    meaning:
      'Connections of each public port. Beyond it a new one takes the place of an idle one of the address with most, or is closed.',
  },
  {
    name: 'GRPC_CONNECTION_REQUEST_MIB',
    default: '8',
    meaning: 'Memory for unfinished messages of one gRPC connection. Beyond it calls are `overloaded`.',
  },
  {
    name: 'GRPC_CONNECTION_ANSWER_MIB',
    default: '32',
    meaning:
      'Memory for answers that the client of one gRPC connection has not read yet. Beyond it reads are `overloaded`, and other calls end with the connection.',
  },
  {
    name: 'READS_AT_ONCE',
    default: 'one for each 16 MiB of the memory budget; at least 2, at most 16',
    meaning:
      'Long reads (lists, event pages, proofs) that run at once. The next ones wait, and callers get places round-robin.',
  },
  {
    name: 'READS_AT_ONCE_PER_CALLER',
    default: '4',
    meaning: 'How many of them one actor, or one address without a key, has.',
  },
  {
    name: 'READS_WAITING',
    default: '1000',
    meaning: 'Long reads that wait. Beyond it those of the caller with most of them are `overloaded`.',
  },
  {
    name: 'FOLLOWERS_MAX',
    default: '10000',
    meaning:
      'Streams that follow on this node. Beyond it those of the actor or address with most are `overloaded`. Over gRPC MEMORY_BUDGET_MIB bounds them first: about 2,000 with 256 MiB.',
  },
  {
    name: 'FOLLOWERS_PER_ACTOR_MAX',
    default: '100',
    meaning: 'How many of them one actor has.',
  },
  {
    name: 'SANDBOX_RUNS_WAITING',
    default: '64',
    meaning: 'Runs of the sandbox that wait. Beyond it those of the address with most of them are `overloaded`.',
  },
  {
    name: 'LEDGER_QUEUE_MAX',
    default: '4096',
    meaning: 'Commands that may wait for one ledger. Beyond it calls are `overloaded`.',
  },
  {
    name: 'LEDGER_QUEUE_MIB',
    default: '32',
    meaning: 'What the commands that wait for one ledger may hold in memory. Beyond it calls are `overloaded`.',
  },
  {
    name: 'SIGNATURE_QUEUE_MAX',
    default: '10000',
    meaning: 'Signatures that may wait to be verified. Beyond it calls are `overloaded`.',
  },
]);
