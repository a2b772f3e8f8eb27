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
import { type VerifyOptions, verifyEvents } from '../client/verifying.ts';
import { sha256HexForm } from '../domain/hash.ts';
import { exitCodes } from './exit-codes.ts';
import { progressBar } from './progress-bar.ts';
import { baseUrlOf, openService } from './service.ts';
import { CliError, type Terminal, usageError } from './terminal.ts';
import { readActorDocuments, readAuthorityDocument, readVerifyInput, type VerifyInput } from './verify-input.ts';
import { type KeyOrigin, reportJson, reportText } from './verify-report.ts';

interface VerifyCommandOptions {
  readonly keys?: readonly string[];
  readonly authority?: string;
  readonly resolver?: string;
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
    .option('--keys <file...>', 'resolver documents of the signers (offline)')
    .option('--authority <file>', 'trust anchor document (offline)')
    .option('--resolver <url>', 'base URL of the service to ask for keys (online)')
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
  0   valid
  ${exitCodes.failed}   invalid
  ${exitCodes.incomplete}   nothing wrong found, but not everything could be checked; also where there is no event at all
  ${exitCodes.usage}  no verdict: the command line is wrong
  ${exitCodes.input}  no verdict: a file is not there, or does not hold what it should; also an export cut short, or with what export does not write
  ${exitCodes.unavailable}  no verdict: it broke off, as where the resolver does not answer`,
    )
    .action(async (file: string, options: VerifyCommandOptions) => {
      try {
        const verdict = await verify(terminal, file, options);
        terminal.exitWith(verdictCodes[verdict]);
      } catch (error) {
        if (error instanceof CliError) throw error;
        throw new CliError(error instanceof Error ? error.message : String(error), exitCodes.unavailable);
      }
    });
}

/** Verifies and reports. CliError where what was given is wrong, anything else where it broke off. */
async function verify(
  terminal: Terminal,
  file: string,
  options: VerifyCommandOptions,
): Promise<Verification['verdict']> {
  if (options.resolver !== undefined && (options.keys !== undefined || options.authority !== undefined)) {
    throw usageError('Give either --resolver or --keys and --authority.');
  }
  const odd = options.head?.find((hash) => !sha256HexForm.test(hash));
  if (odd !== undefined) {
    throw usageError(
      `Option --head takes hashes, each of 64 hex digits in lower case: ${JSON.stringify(odd)} is none.`,
    );
  }
  const input = await readVerifyInput(terminal, file);
  await using trust = await trustOf(terminal, input, options);
  const found = await shown(terminal, input, (events) =>
    verifyEvents(events, {
      keys: trust.keys,
      authorityKeys: trust.authorityKeys,
      ...held(input, options.kind),
      ...(input.ledgerId === null ? {} : { ledgerId: input.ledgerId }),
      ...(input.masterId === null ? {} : { masterId: input.masterId }),
      ...(options.head === undefined ? {} : { mustContain: options.head }),
    }),
  );
  const advised = options.kind === undefined ? withAdvice(found, input) : found;
  const result = input.goesOn ? goingOn(advised) : advised;
  await terminal.print(options.json ? reportJson(result, trust.origin) : reportText(result, trust.origin));
  return result.verdict;
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
  readonly origin: KeyOrigin;
}

/** Keys from the resolver if one is named, else from the files named, else from the export itself. */
async function trustOf(terminal: Terminal, input: VerifyInput, options: VerifyCommandOptions): Promise<Trust> {
  if (options.resolver !== undefined) {
    const client = await openService(terminal, { baseUrl: baseUrlOf('--resolver', options.resolver), ca: options.ca });
    try {
      const authorityKeys = authorityKeysOf(await client.getAuthority());
      const origin = { text: `from the resolver at ${options.resolver}`, sameFile: false };
      return { keys: keysFromResolver(client), authorityKeys, origin, [Symbol.asyncDispose]: () => client.close() };
    } catch (error) {
      await client.close();
      throw error;
    }
  }
  const named = options.keys === undefined ? null : await readActorDocuments(terminal, options.keys);
  const anchor =
    options.authority === undefined ? input.authority : await readAuthorityDocument(terminal, options.authority);
  const sameFile =
    (named === null && input.actors.length > 0) || (options.authority === undefined && input.authority !== null);
  const text = named !== null ? `from ${options.keys?.join(', ')}` : sameFile ? 'from the file itself' : 'none given';
  return {
    keys: keysFromDocuments(named ?? input.actors),
    authorityKeys: anchor === null ? null : authorityKeysOf(anchor),
    origin: { text, sameFile },
    [Symbol.asyncDispose]: async () => {},
  };
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
