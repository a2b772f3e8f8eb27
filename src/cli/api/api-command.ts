import { randomUUID } from 'node:crypto';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { isUncertain } from '../../client/call/retry.ts';
import type { LedgerTrustClient } from '../../client/client.ts';
import { LedgerTrustError } from '../../client/error.ts';
import type { CallOptions } from '../../client/methods.ts';
import { signerFromPrivateKey } from '../../client/signing/signing.ts';
import type { WatermarkStore } from '../../client/watermark-store.ts';
import { readPrivateKey } from '../commands/file-content.ts';
import { openService } from '../service/service.ts';
import { neededApiKey, readSettings, type SettingOptions, type Settings } from '../service/settings.ts';
import { CliError, type Terminal } from '../terminal/terminal.ts';
import { type Shown, textOfAnswer } from './shown-answer.ts';

export interface ApiCall<O> {
  readonly terminal: Terminal;
  readonly client: LedgerTrustClient;
  readonly settings: Settings;
  readonly args: readonly string[];
  readonly options: O;
  /** For the one call of the command that changes something: its idempotency key. */
  readonly once: CallOptions;
}

interface CommonOptions extends SettingOptions {
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly idempotencyKey?: string;
}

interface ApiCommand<O> {
  /** Its name and arguments, for example `show <ledger>`. */
  readonly usage: string;
  readonly description: string;
  readonly options?: readonly Option[];
  /** `keyed`: it changes something once, by its idempotency key. `unkeyed`: the API has no key for it. */
  readonly kind: 'read' | 'keyed' | 'unkeyed';
  /** It makes the profile, so that it needs neither a profile nor an API key. */
  readonly makesProfile?: boolean;
  /** Where the client keeps what it has verified of checkpoints. */
  readonly watermarks?: (options: O) => WatermarkStore;
  /** Makes the calls. null: it has printed by itself. */
  run(call: ApiCall<O>): Promise<Shown | null>;
}

/** Adds a command with the options that all of them have. `O`: the command's own options. */
export function addApiCommand<O>(parent: Command, terminal: Terminal, command: ApiCommand<O>): void {
  const added = parent
    .command(command.usage)
    .description(command.description)
    .option('--profile <name>', 'profile to call with; else LEDGER_TRUST_PROFILE, else default')
    .option('--url <url>', 'base URL of the service; else LEDGER_TRUST_URL, else that of the profile')
    .option('--ca <file>', 'certificates to trust, PEM; else LEDGER_TRUST_CA_FILE')
    .option('--json', 'show the answer as JSON')
    .option('-q, --quiet', 'show ids alone, a line each');
  if (command.kind === 'keyed')
    added.option('--idempotency-key <key>', 'key by which the service carries the call out once, for 24 hours');
  for (const option of command.options ?? []) added.addOption(option);
  added.action(async (...given: unknown[]) => {
    const args = given.slice(0, -2).map((value) => (typeof value === 'string' ? value : ''));
    // commander gives what the options above name.
    await perform(terminal, command, args, given.at(-2) as CommonOptions & O);
  });
}

async function perform<O>(
  terminal: Terminal,
  command: ApiCommand<O>,
  args: readonly string[],
  options: CommonOptions & O,
): Promise<void> {
  const idempotencyKey = options.idempotencyKey ?? randomUUID();
  try {
    const settings = await readSettings(terminal, options, command.makesProfile);
    await using client = await openClient(terminal, settings, command, options);
    const once = command.kind === 'keyed' ? { idempotencyKey } : {};
    const shown = await command.run({ terminal, client, settings, args, options, once });
    if (shown !== null) await terminal.print(textOfAnswer(shown, options));
  } catch (error) {
    if (!(error instanceof LedgerTrustError)) throw error;
    throw new CliError(`${sentenceOf(error)}${adviceOn(error, command.kind, idempotencyKey)}`);
  }
}

/** Only calls that change something are signed. */
async function openClient<O>(terminal: Terminal, settings: Settings, command: ApiCommand<O>, options: O) {
  const { kind, makesProfile, watermarks } = command;
  const { url: baseUrl, keyFile, keyId, ca } = settings;
  if (makesProfile) return openService(terminal, { baseUrl, ca });
  const apiKey = neededApiKey(settings);
  const isSigned = kind === 'keyed' && keyFile !== undefined;
  const signer = isSigned ? signerFromPrivateKey(await readPrivateKey(terminal, keyFile), keyId) : undefined;
  return openService(terminal, { baseUrl, apiKey, signer, ca, watermarks: watermarks?.(options) });
}

/** The service's own sentence, with what finds the call in the service's log. */
export function sentenceOf({ message, code, requestId }: LedgerTrustError): string {
  return `${message} (${code}${requestId === null ? '' : `, request ${requestId}`})`;
}

function adviceOn(error: LedgerTrustError, kind: ApiCommand<never>['kind'], idempotencyKey: string): string {
  const isFault = error.code === 'internal' || error.code === 'invalid_answer';
  if (kind === 'read' || !(isUncertain(error) || isFault)) return '';
  const unknown = ' It is not known whether the service carried the call out.';
  if (kind === 'unkeyed') return `${unknown} If it did, running the command again does it a second time.`;
  return `${unknown} Run the same command again with --idempotency-key ${idempotencyKey}: it then counts once.`;
}

export function option(flags: string, description: string): Option {
  return new Option(flags, description);
}

export function neededOption(flags: string, description: string): Option {
  return new Option(flags, description).makeOptionMandatory();
}

/** An option that may be given several times. Its value is a list. */
export function listOption(flags: string, description: string): Option {
  const added = (value: string, before: readonly string[] | undefined) => [...(before ?? []), value];
  return new Option(flags, `${description}; may be given several times`).argParser(added);
}

export function numberOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser((value: string) => {
    if (!/^\d{1,15}$/.test(value)) throw new InvalidArgumentError('It takes a whole number.');
    return Number(value);
  });
}

/** Options of lists. They have the bounds that the API says. */
export const pageOptions = (): Option[] => [
  numberOption('--limit <n>', 'how many at most'),
  numberOption('--offset <n>', 'how many to skip'),
  option('--order <order>', 'oldest first, or newest first').choices(['asc', 'desc']),
];

export interface PageOptions {
  readonly limit?: number;
  readonly offset?: number;
  readonly order?: string;
}

export const pageOf = ({ limit, offset, order }: PageOptions) => ({ limit, offset, order });

/** The same for lists that have cursors and a range of time, too. */
export const rangeOptions = (): Option[] => [
  ...pageOptions(),
  option('--cursor <cursor>', 'continue after the page that named it'),
  option('--from <time>', 'created then or later, ISO 8601'),
  option('--to <time>', 'created then or earlier, ISO 8601'),
];

export interface RangeOptions extends PageOptions {
  readonly cursor?: string;
  readonly from?: string;
  readonly to?: string;
}

export const rangeOf = ({ cursor, from, to, ...page }: RangeOptions) => ({ ...pageOf(page), cursor, from, to });
