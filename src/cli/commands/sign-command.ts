import { type Command, Option } from 'commander';
import { digestOf, entityRequestInput, type SigningInput, signerFromPrivateKey } from '../../client/signing/signing.ts';
import { LedgerError } from '../../domain/errors.ts';
import { parseKid } from '../../domain/keys/signature.ts';
import { checkEventType, checkTime, checkUuid } from '../../domain/values/fields.ts';
import { shownJson } from '../terminal/shown-text.ts';
import { inputError, nameOf, readInput, type Terminal, usageError } from '../terminal/terminal.ts';
import { readJson, readPrivateKey } from './file-content.ts';

interface SignOptions {
  readonly key: string;
  readonly keyId?: string;
  readonly eventType?: string;
  readonly ledgerId?: string;
  readonly payload?: string;
  readonly entityRequest?: boolean;
  readonly actorId?: string;
  readonly method?: string;
  readonly path?: string;
  readonly body?: string;
  readonly timestamp?: string;
  readonly json?: boolean;
}

/** `ledger-trust sign`: prints what an actor signs, its digest and its signature. */
export function addSign(program: Command, terminal: Terminal): void {
  program
    .command('sign')
    .description('Sign an event or an entity request; shows canonical JSON, digest and signature.')
    .requiredOption('--key <file>', 'Ed25519 private key, PEM')
    .option('--key-id <kid>', 'svc:actor:<uuid>#key-<n>, for the headers that --json shows')
    .option('--event-type <type>', 'for an event: its type')
    .option('--ledger-id <uuid>', 'for an event: the ledger')
    .option(
      '--payload <file>',
      'for an event: the signed payload with the injected fields, a JSON file, or - for stdin',
    )
    .option('--entity-request', 'sign a request of an entity (ENTITY_REQUEST) and no event')
    .option('--actor-id <uuid>', 'for an entity request: the entity’s actor')
    .addOption(new Option('--method <method>', 'for an entity request').choices(['GET', 'POST', 'PATCH', 'DELETE']))
    .option('--path <path>', 'for an entity request: the path as sent, with its query')
    .option('--body <file>', 'for an entity request: the raw body, or - for stdin; none if left out')
    .option('--timestamp <time>', 'for an entity request: X-Timestamp; now if left out')
    .option('--json', 'show it as JSON, with the headers to send')
    .action(async (options: SignOptions) => {
      const input = options.entityRequest ? await requestInput(terminal, options) : await eventInput(terminal, options);
      await show(terminal, options, input);
    });
}

interface Signed extends SigningInput {
  /** Of an entity request only. */
  readonly timestamp?: string;
}

async function eventInput(terminal: Terminal, options: SignOptions): Promise<Signed> {
  const eventType = formed(options.eventType, '--event-type', checkEventType);
  const ledgerId = formed(options.ledgerId, '--ledger-id', checkUuid);
  const payload = needed(options.payload, '--payload');
  const node = await readJson(terminal, payload, 'payload');
  if (node.kind !== 'object') throw inputError(`${nameOf(payload)} holds no payload: it must be a JSON object.`);
  return { eventType, ledgerId, canonical: node.canonical };
}

async function requestInput(terminal: Terminal, options: SignOptions): Promise<Signed> {
  const actorId = formed(options.actorId, '--actor-id', checkUuid);
  const httpMethod = needed(options.method, '--method');
  const path = needed(options.path, '--path');
  const body = options.body === undefined ? new Uint8Array(0) : await readInput(terminal, options.body);
  const timestamp = options.timestamp ?? new Date(terminal.now()).toISOString();
  formed(timestamp, '--timestamp', checkTime);
  return { ...entityRequestInput(actorId, { httpMethod, path, body }, timestamp), timestamp };
}

async function show(terminal: Terminal, options: SignOptions, input: Signed): Promise<void> {
  if (options.keyId !== undefined && parseKid(options.keyId) === null) {
    throw usageError('Option --key-id must be svc:actor:<uuid>#key-<n>.');
  }
  const signer = signerFromPrivateKey(await readPrivateKey(terminal, options.key));
  const digest = digestOf(input);
  const signature = await signer.sign(digest);
  const digestHex = Buffer.from(digest).toString('hex');
  if (!options.json) {
    const time = input.timestamp === undefined ? '' : `timestamp  ${input.timestamp}\n`;
    const canonical = shownJson(input.canonical);
    if (canonical !== input.canonical)
      terminal.tell('Some characters of the canonical JSON are shown escaped: --json has the exact text.\n');
    return terminal.print(`canonical  ${canonical}\n${time}digest     ${digestHex}\nsignature  ${signature}\n`);
  }
  const headers = {
    'X-Actor-Sig': signature,
    'X-Signing-Key-ID': options.keyId,
    'X-Timestamp': input.timestamp,
  };
  const shown = {
    event_type: input.eventType,
    ledger_id: input.ledgerId,
    canonical_json: input.canonical,
    digest: digestHex,
    signature,
    headers,
  };
  return terminal.print(`${shownJson(JSON.stringify(shown, null, 2))}\n`);
}

function needed(value: string | undefined, option: string): string {
  if (value === undefined || value === '') throw usageError(`Option ${option} is needed here.`);
  return value;
}

/** The value of an option: what no server would accept is not signed. Throws CliError (exit code 64). */
function formed<T>(value: string | undefined, option: string, check: (field: string, value: string) => T): T {
  const given = needed(value, option);
  try {
    return check(option, given);
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    throw usageError(`Option ${option} must be ${String(error.details.expected)}.`);
  }
}
