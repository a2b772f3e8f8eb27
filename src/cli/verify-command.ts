import { type Command, Option } from 'commander';
import type { Event } from '../client/event.ts';
import {
  type AuthorityKeys,
  authorityKeysOf,
  type KeySource,
  keysFromDocuments,
  keysFromResolver,
} from '../client/key-source.ts';
import type { Verification } from '../client/verification.ts';
import { CLOCK_BEHIND_MAX_MS, type TrustedKeys, type VerifyOptions, verifyEvents } from '../client/verifying.ts';
import { sha256HexForm } from '../domain/hash.ts';
import { isoTime } from '../domain/time.ts';
import { exitCodes } from './exit-codes.ts';
import { isSameFile } from './file-content.ts';
import { progressBar } from './progress-bar.ts';
import { baseUrlOf, openService } from './service.ts';
import { CliError, type Terminal, usageError } from './terminal.ts';
import { readActorDocuments, readAuthorityDocument, readVerifyInput, type VerifyInput } from './verify-input.ts';
import { reportJson, reportText } from './verify-report.ts';

interface VerifyCommandOptions {
  readonly keys?: readonly string[];
  readonly authority?: string;
  readonly resolver?: string;
  readonly trustFileKeys?: boolean;
  readonly ca?: string;
  readonly kind?: VerifyOptions['kind'];
  readonly head?: readonly string[];
  readonly json?: boolean;
}

const verdictCodes: { readonly [verdict in Verification['verdict']]: number } = {
  valid: 0,
  invalid: exitCodes.failed,
  incomplete: exitCodes.incomplete,
};

/** `ledger-trust verify`: events against the rules, without trusting the service that they are from. */
export function addVerify(program: Command, terminal: Terminal): void {
  program
    .command('verify')
    .description('Verify exported events; the exit code is the verdict.')
    .argument('<file>', 'an export, or a saved answer of GET …/events; - for stdin')
    .option('--resolver <url>', 'base URL of the service to ask for the public keys (online)')
    .option('--keys <file...>', 'resolver documents of the signers, not from the same source as the events (offline)')
    .option('--authority <file>', 'trust anchor document, not from the same source as the events (offline)')
    .option('--trust-file-keys', 'trust the public keys that the file itself holds: only if you made it yourself')
    .option('--ca <file>', 'certificates to trust, PEM')
    .addOption(
      new Option(
        '--kind <kind>',
        'what the events are: ledger or master, where a gap is wrong, or segment, where one leaves the verdict incomplete; if left out, what an export says of itself, and of an answer that it may be a segment',
      ).choices(['ledger', 'master', 'segment']),
    )
    .option('--head <hash...>', 'hashes known from before, which the events must hold')
    .option('--json', 'show the result as JSON')
    .addHelpText(
      'after',
      `
Exit codes:
  0   valid, under keys from --resolver, from --keys and --authority, or from the file with --trust-file-keys
  ${exitCodes.failed}   invalid
  ${exitCodes.incomplete}   nothing wrong found, but not everything could be checked; also where the keys come from the file alone, and where there is no event at all
  ${exitCodes.usage}  no verdict: the command line is wrong
  ${exitCodes.input}  no verdict: a file is not there, or does not hold what it should; also an export cut short, or with what export does not write
  ${exitCodes.unavailable}  no verdict: it broke off, as where the resolver does not answer`,
    )
    .action(async (file: string, options: VerifyCommandOptions) => {
      try {
        await verify(terminal, file, options);
      } catch (error) {
        if (error instanceof CliError) throw error;
        throw new CliError(error instanceof Error ? error.message : String(error), exitCodes.unavailable);
      }
    });
}

/** Verifies and reports. CliError where what was given is wrong, anything else where it broke off. */
async function verify(terminal: Terminal, file: string, options: VerifyCommandOptions): Promise<void> {
  if (options.resolver !== undefined && (options.keys !== undefined || options.authority !== undefined)) {
    throw usageError('Give either --resolver or --keys and --authority.');
  }
  if (options.resolver !== undefined && options.trustFileKeys === true) {
    throw usageError('Give either --resolver or --trust-file-keys: with a resolver no key of the file is used.');
  }
  const odd = options.head?.find((hash) => !sha256HexForm.test(hash));
  if (odd !== undefined) {
    throw usageError(
      `Option --head takes hashes, each of 64 hex digits in lower case: ${JSON.stringify(odd)} is none.`,
    );
  }
  const input = await readVerifyInput(terminal, file);
  await using trust = await trustOf(terminal, file, input, options);
  const found = await shown(terminal, input, (events) =>
    verifyEvents(events, {
      keys: trust.keys,
      authorityKeys: trust.authorityKeys,
      trustedKeys: trust.trustedKeys,
      latest: isoTime(terminal.now() + CLOCK_BEHIND_MAX_MS),
      ...held(input, options.kind),
      ...(input.ledgerId === null ? {} : { ledgerId: input.ledgerId }),
      ...(input.masterId === null ? {} : { masterId: input.masterId }),
      ...(options.head === undefined ? {} : { mustContain: options.head }),
    }),
  );
  const advised = options.kind === undefined ? withAdvice(found, input) : found;
  const result = input.goesOn ? goingOn(advised) : advised;
  terminal.exitWith(verdictCodes[result.verdict]);
  await terminal.print(options.json ? reportJson(result, trust.keysFrom) : reportText(result, trust.keysFrom));
}

/** Shows how far the work is through the events. */
async function shown<T>(
  terminal: Terminal,
  input: VerifyInput,
  work: (events: AsyncIterable<Event>) => Promise<T>,
): Promise<T> {
  const bar = await progressBar(terminal, '{bar} {value} of {total} events', input.count);
  const events = async function* (): AsyncIterable<Event> {
    for await (const event of input.events()) {
      yield event;
      bar.add(1);
    }
  };
  try {
    return await work(events());
  } finally {
    bar.stop();
  }
}

interface Trust extends AsyncDisposable {
  readonly keys: KeySource;
  readonly authorityKeys: AuthorityKeys | null;
  readonly trustedKeys: TrustedKeys;
  /** Where the keys come from, in words. */
  readonly keysFrom: string;
}

/**
 * Keys from the resolver if one is named, else from the files named, else from the file under test. The last vouch for nobody, unless the
 * user says so.
 */
async function trustOf(
  terminal: Terminal,
  file: string,
  input: VerifyInput,
  options: VerifyCommandOptions,
): Promise<Trust> {
  if (options.resolver !== undefined) {
    const client = await openService(terminal, { baseUrl: baseUrlOf('--resolver', options.resolver), ca: options.ca });
    try {
      const authorityKeys = authorityKeysOf(await client.getAuthority());
      return {
        keys: keysFromResolver(client),
        authorityKeys,
        trustedKeys: 'all',
        keysFrom: `from the resolver at ${options.resolver}`,
        [Symbol.asyncDispose]: () => client.close(),
      };
    } catch (error) {
      await client.close();
      throw error;
    }
  }
  const named = options.keys === undefined ? null : await readActorDocuments(terminal, options.keys);
  const anchor =
    options.authority === undefined ? input.authority : await readAuthorityDocument(terminal, options.authority);
  const trusts = options.trustFileKeys === true;
  const actors = trusts || (await isOtherFile(file, options.keys));
  const authority =
    trusts || (await isOtherFile(file, options.authority === undefined ? undefined : [options.authority]));
  return {
    keys: keysFromDocuments(named ?? input.actors),
    authorityKeys: anchor === null ? null : authorityKeysOf(anchor),
    trustedKeys: actors ? (authority ? 'all' : 'actors') : authority ? 'authority' : 'none',
    keysFrom: keysFrom(input, options),
    [Symbol.asyncDispose]: async () => {},
  };
}

/** Whether keys are from files, and none of these is the file under test. */
async function isOtherFile(file: string, named: readonly string[] | undefined): Promise<boolean> {
  if (named === undefined) return false;
  const same = await Promise.all(named.map((path) => isSameFile(path, file)));
  return !same.includes(true);
}

function keysFrom(input: VerifyInput, { keys, authority }: VerifyCommandOptions): string {
  const named = keys ?? (authority === undefined ? [] : [authority]);
  const isInFile =
    (keys === undefined && input.actors.length > 0) || (authority === undefined && input.authority !== null);
  if (named.length === 0) return isInFile ? 'from the file itself' : 'none given';
  return `from ${named.join(', ')}${isInFile ? ' and from the file itself' : ''}`;
}

/** What the events are and how many of them must be there: as the user says, who may be stricter than the file and more lenient. */
function held(input: VerifyInput, kind: VerifyOptions['kind'] | undefined): Pick<VerifyOptions, 'kind' | 'extent'> {
  if (kind === undefined) return { kind: input.kind, extent: input.extent };
  if (kind === 'segment') return { kind, extent: 'some' };
  return { kind, extent: kind === input.kind && input.extent === 'all' ? 'all' : 'run' };
}

/** Gaps that nobody can tell from those of a segment: says how to insist that there be none. */
function withAdvice(result: Verification, { kind }: VerifyInput): Verification {
  const whole = kind === 'master' ? 'master' : 'ledger';
  const incomplete = result.incomplete.map((reason) =>
    reason.type === 'middle_unknown'
      ? { ...reason, detail: `${reason.detail}; pass --kind ${whole} to insist on a whole ${whole}` }
      : reason,
  );
  return { ...result, incomplete };
}

/** An answer with a next_cursor is the beginning of a list. */
function goingOn(result: Verification): Verification {
  const reason = {
    type: 'end_unknown' as const,
    detail: 'the answer names a next_cursor: more events follow what was saved',
    eventId: '',
    count: 0,
  };
  const verdict = result.verdict === 'valid' ? 'incomplete' : result.verdict;
  return { ...result, verdict, verified: false, incomplete: [...result.incomplete, reason] };
}
