import type { Command } from 'commander';
import type { Event } from '../../client/event.ts';
import { exitCodes } from '../terminal/exit-codes.ts';
import { shownText } from '../terminal/shown-text.ts';
import { type Terminal, usageError } from '../terminal/terminal.ts';
import { addApiCommand, neededOption, option, type RangeOptions, rangeOf, rangeOptions } from './api-command.ts';
import { jsonArgument } from './json-argument.ts';
import { answered, cursorLines, recordLines, tableLines } from './shown-answer.ts';

interface AppendOptions {
  readonly type: string;
  readonly payload: string;
}

interface EventOptions extends RangeOptions {
  readonly master?: string;
  readonly type?: string;
  readonly verifySignatures?: boolean;
}

/** `ledger-trust append` and `ledger-trust events`. */
export function addEventCommands(program: Command, terminal: Terminal): void {
  addApiCommand<AppendOptions>(program, terminal, {
    usage: 'append <master>',
    description: 'Sign an event with the key of the profile and append it to a master.',
    kind: 'keyed',
    options: [
      neededOption('--type <type>', 'for example SHIPMENT_DISPATCHED'),
      neededOption('--payload <json>', 'a JSON object, a file that holds one, or - for stdin'),
    ],
    async run({ client, args: [uuid = ''], options, once }) {
      const payload = await jsonArgument(terminal, '--payload', options.payload);
      const event = await client.appendEvent({ uuid, eventType: options.type, payload }, once);
      const lines = recordLines({
        event: event.eventId,
        type: event.eventType,
        status: event.status,
        ledger: event.ledgerId,
        seq: event.seq,
        hash: event.hash,
        created: event.createdAt,
      });
      return answered('appendEvent', event, [event.eventId], lines);
    },
  });

  addApiCommand<EventOptions>(program, terminal, {
    usage: 'events [ledger]',
    description:
      'List the events of a ledger or a master, as the service checked them. To check them yourself: export and verify.',
    kind: 'read',
    options: [
      option('--master <uuid>', 'the events of this master, in place of a ledger'),
      option('--type <type>', 'of this type'),
      ...rangeOptions(),
      option('--verify-signatures', 'have the service verify the signatures, too'),
    ],
    async run({ client, args: [ledgerId = ''], options }) {
      const { master: uuid, type: eventType } = options;
      const isOfLedger = uuid === undefined;
      if ((ledgerId !== '') !== isOfLedger)
        throw usageError('Give the id of a ledger, or --master and that of a master.');
      const verify = options.verifySignatures ? 'signatures' : undefined;
      const filter = { eventType, verify, ...rangeOf(options) };
      if (isOfLedger) {
        const page = await client.listLedgerEvents({ ledgerId, ...filter });
        return answered('listLedgerEvents', page, ...viewOf(terminal, page));
      }
      const page = await client.listMasterEvents({ uuid, ...filter });
      return answered('listMasterEvents', page, ...viewOf(terminal, page));
    },
  });
}

interface EventPage {
  readonly events: readonly Event[];
  readonly integrity: {
    readonly verified: boolean;
    readonly issues: readonly { readonly eventId: string; readonly type: string; readonly detail: string }[];
  };
  readonly nextCursor: string | null;
}

/** Ids and lines. Sets exit code 1 if the service found that an event was changed. */
function viewOf(terminal: Terminal, { events, integrity, nextCursor }: EventPage): [ids: string[], lines: string[]] {
  if (!integrity.verified) terminal.exitWith(exitCodes.failed);
  const rows = events.map((event) => [
    event.seq,
    event.createdAt,
    event.id,
    event.actorId,
    event.actorSig === null ? 'sealed' : 'signed',
    event.eventType,
  ]);
  const found = integrity.issues.map(({ type, eventId, detail }) => `✗ ${type}  event ${eventId}: ${detail}`);
  const result = integrity.verified ? ['The service recomputed every hash of this page: nothing was changed.'] : found;
  return [
    events.map(({ id }) => id),
    [
      ...tableLines(['seq', 'created', 'event', 'actor', 'by', 'type'], rows),
      ...result.map(shownText),
      ...cursorLines(nextCursor),
    ],
  ];
}
