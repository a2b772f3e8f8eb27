import { type Command, Option } from 'commander';
import type { Event } from '../../client/event.ts';
import type { Verification } from '../../client/verify/verification.ts';
import { CLOCK_BEHIND_MAX_MS, type VerifyOptions, verifyEvents } from '../../client/verify/verifying.ts';
import { sha256HexForm } from '../../domain/keys/hash.ts';
import { isoTime } from '../../domain/values/time.ts';
import { exitCodes } from '../terminal/exit-codes.ts';
import { progressBar } from '../terminal/progress-bar.ts';
import { CliError, type Terminal, usageError } from '../terminal/terminal.ts';
import { type CheckpointOptions, checkCheckpointOptions, checkpointsFor } from './verify-checkpoint.ts';
import { readVerifyInput, type VerifyInput } from './verify-input.ts';
import { reportJson, reportText } from './verify-report.ts';
import { checkTrustOptions, type TrustOptions, trustOf } from './verify-trust.ts';

interface VerifyCommandOptions extends TrustOptions, CheckpointOptions {
  readonly kind?: VerifyOptions['kind'];
  readonly head?: readonly string[];
  readonly json?: boolean;
}

const resultCodes: { readonly [verdict in Verification['verdict']]: number } = {
  valid: 0,
  invalid: exitCodes.failed,
  incomplete: exitCodes.incomplete,
};

/** `ledger-trust verify`: verifies events without trusting the service that they are from. */
export function addVerify(program: Command, terminal: Terminal): void {
  program
    .command('verify')
    .description('Verify exported events; the exit code is the result.')
    .argument('<file>', 'an export, or a saved answer of GET …/events; - for stdin')
    .option('--resolver <url>', 'base URL of the service to ask for the public keys (online)')
    .option('--keys <file...>', 'resolver documents of the signers, not from the same source as the events (offline)')
    .option('--authority <file>', 'trust anchor document, not from the same source as the events (offline)')
    .option('--trust-file-keys', 'trust the public keys that the file itself holds: only if you made it yourself')
    .option('--ca <file>', 'certificates to trust, PEM')
    .addOption(
      new Option(
        '--kind <kind>',
        'what the events are: ledger or master, where a gap is wrong, or segment, where one leaves the result incomplete; if left out, what an export says of itself, and of an answer that it may be a segment',
      ).choices(['ledger', 'master', 'segment']),
    )
    .option('--head <hash...>', 'hashes that you kept, which the events must contain')
    .option('--checkpoint <file>', 'signed checkpoint that the events must agree with, beside that of an export')
    .option(
      '--log-key <key...>',
      'key that signs checkpoints, from elsewhere: base64 of 32 bytes, or a vkey; needs --origin; if left out, those of the trust anchor',
    )
    .option('--origin <name>', 'name of the service in its checkpoints, such as ledger.example/v1')
    .option('--json', 'show the result as JSON')
    .addHelpText(
      'after',
      `
Exit codes:
  0   valid, under keys from --resolver, from --keys and --authority, or from the file with --trust-file-keys
  ${exitCodes.failed}   invalid, or the checkpoint is refused
  ${exitCodes.incomplete}   nothing wrong found, but not everything could be checked; also where the keys come from the file alone, where neither a seal nor a checkpoint covers the last events, and where there is no event at all
  ${exitCodes.usage}  no result: the command line is wrong
  ${exitCodes.input}  no result: a file is not there, or does not hold what it should; also an export cut short, or with what export does not write
  ${exitCodes.unavailable}  no result: it broke off, as where the resolver does not answer`,
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

/** Throws CliError if the input is wrong, and any other error if the check broke off. */
async function verify(terminal: Terminal, file: string, options: VerifyCommandOptions): Promise<void> {
  checkTrustOptions(options);
  checkCheckpointOptions(options);
  const odd = options.head?.find((hash) => !sha256HexForm.test(hash));
  if (odd !== undefined) {
    throw usageError(
      `Option --head takes hashes, each of 64 hex digits in lower case: ${JSON.stringify(odd)} is none.`,
    );
  }
  const input = await readVerifyInput(terminal, file);
  await using trust = await trustOf(terminal, file, input, options);
  const checkpoint = await checkpointsFor(terminal, file, input, options, trust.trustedAnchor);
  const found = await shown(terminal, input, (events) =>
    verifyEvents(events, {
      keys: trust.keys,
      authorityKeys: trust.authorityKeys,
      trustedKeys: trust.trustedKeys,
      latest: isoTime(terminal.now() + CLOCK_BEHIND_MAX_MS),
      ...held(input, options.kind),
      ledgerId: input.ledgerId ?? undefined,
      masterId: input.masterId ?? undefined,
      mustContain: options.head,
      checkpoint,
    }),
  );
  const advised = options.kind === undefined ? withAdvice(found, input) : found;
  const result = input.goesOn ? goingOn(advised) : advised;
  terminal.exitWith(resultCodes[result.verdict]);
  await terminal.print(
    options.json ? reportJson(result, trust.origin) : reportText(result, trust.origin, terminal.colored),
  );
}

async function shown<T>(
  terminal: Terminal,
  input: VerifyInput,
  work: (events: AsyncIterable<Event>) => Promise<T>,
): Promise<T> {
  using bar = await progressBar(terminal, '{bar} {value} of {total} events', input.count);
  const events = async function* (): AsyncIterable<Event> {
    for await (const event of input.events()) {
      yield event;
      bar.add(1);
    }
  };
  return await work(events());
}

/** The user's `--kind` comes first: it may be stricter than the file, or more lenient. */
function held(input: VerifyInput, kind: VerifyOptions['kind'] | undefined): Pick<VerifyOptions, 'kind' | 'extent'> {
  if (kind === undefined) return { kind: input.kind, extent: input.extent };
  if (kind === 'segment') return { kind, extent: 'some' };
  return { kind, extent: kind === input.kind && input.extent === 'all' ? 'all' : 'run' };
}

/** A gap may be a fault, or the gap of a segment. Adds how to insist on a list without gaps. */
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
  const detail = 'the answer names a next_cursor: more events follow what was saved';
  const reason = { type: 'end_unknown', detail, eventId: '', count: 0 } as const;
  const verdict = result.verdict === 'valid' ? 'incomplete' : result.verdict;
  return { ...result, verdict, verified: false, incomplete: [...result.incomplete, reason] };
}
