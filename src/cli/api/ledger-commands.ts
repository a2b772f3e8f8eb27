import type { Command } from 'commander';
import { ACTOR_FORMS, actorIdOf } from '../service/settings.ts';
import { type Terminal, usageError } from '../terminal/terminal.ts';
import { type ApiCall, addApiCommand, option, type RangeOptions, rangeOf, rangeOptions } from './api-command.ts';
import { answered, cursorLines, recordLines, tableLines } from './shown-answer.ts';

interface OpenOptions {
  readonly buyer?: string;
  readonly supplier?: string;
  readonly buyerOrganization?: string;
  readonly supplierOrganization?: string;
  readonly counterparty?: string;
  readonly purpose?: string;
}

interface ListOptions extends RangeOptions {
  readonly party?: string;
  readonly type?: string;
  readonly status?: string;
  readonly role?: string;
}

/** `ledger-trust ledgers`. */
export function addLedgerCommands(program: Command, terminal: Terminal): void {
  const ledgers = program.command('ledgers').description('List, show, open and close ledgers.');

  addApiCommand<ListOptions>(ledgers, terminal, {
    usage: 'list',
    description: 'List the ledgers that you may read, by creation time.',
    kind: 'read',
    options: [
      option('--type <type>', 'of this type').choices(['ORDER', 'FACILITY_ROOT', 'ENTITY_ROOT', 'ENGAGEMENT']),
      option('--status <status>', 'of this status').choices(['OPEN', 'CLOSED']),
      option('--role <role>', 'where you are that').choices([
        'buyer',
        'supplier',
        'primary',
        'counterparty',
        'delegate',
      ]),
      option('--party <actor>', `of which this actor is a party: ${ACTOR_FORMS}`),
      ...rangeOptions(),
    ],
    async run({ client, options }) {
      const { type: ledgerType, status, role, party } = options;
      const counterpartyActorId = party === undefined ? undefined : await actorIdOf(terminal, party);
      const filter = { ledgerType, status, role, counterpartyActorId };
      const answer = await client.listLedgers({ ...filter, ...rangeOf(options) });
      const rows = answer.ledgers.map((ledger) => [
        ledger.id,
        ledger.ledgerType,
        ledger.status,
        ledger.createdAt,
        ledger.buyerActorId ?? ledger.primaryActorId,
        ledger.supplierActorId ?? ledger.counterpartyActorId,
        ledger.purpose,
      ]);
      const columns = ['ledger', 'type', 'status', 'created', 'buyer or primary', 'supplier or other', 'purpose'];
      const lines = [...tableLines(columns, rows), ...cursorLines(answer.nextCursor)];
      const ids = answer.ledgers.map(({ id }) => id);
      return answered('listLedgers', answer, ids, lines);
    },
  });

  addApiCommand(ledgers, terminal, {
    usage: 'show <ledger>',
    description: 'Show a ledger.',
    kind: 'read',
    async run({ client, args: [ledgerId = ''] }) {
      const ledger = await client.getLedger({ ledgerId });
      const lines = recordLines({
        ledger: ledger.id,
        type: ledger.ledgerType,
        status: ledger.status,
        buyer: ledger.buyerActorId ?? undefined,
        supplier: ledger.supplierActorId ?? undefined,
        primary: ledger.primaryActorId ?? undefined,
        counterparty: ledger.counterpartyActorId ?? undefined,
        created: ledger.createdAt,
        purpose: ledger.purpose ?? undefined,
      });
      return answered('getLedger', ledger, [ledger.id], lines);
    },
  });

  addApiCommand<OpenOptions>(ledgers, terminal, {
    usage: 'open',
    description: 'Open an order ledger with a buyer or a supplier, or an engagement with a counterparty.',
    kind: 'keyed',
    options: [
      option('--buyer <actor>', `the buyer, if you are the supplier: ${ACTOR_FORMS}`),
      option('--supplier <actor>', 'the supplier, if you are the buyer'),
      option('--buyer-organization <uuid>', 'the organization that the buyer acts for; its first if left out'),
      option('--supplier-organization <uuid>', 'the organization that the supplier acts for; its first if left out'),
      option('--counterparty <actor>', 'the other side of an engagement'),
      option('--purpose <text>', 'what the engagement is for'),
    ],
    run: async (call) => (call.options.counterparty === undefined ? openOrder(call) : openEngagement(call)),
  });

  addApiCommand(ledgers, terminal, {
    usage: 'close <ledger>',
    description: 'Close a ledger: no event can follow but revocations.',
    kind: 'keyed',
    async run({ client, args: [ledgerId = ''], once }) {
      const answer = await client.closeLedger({ ledgerId }, once);
      const lines = recordLines({ ledger: answer.ledgerId, status: answer.status });
      return answered('closeLedger', answer, [answer.ledgerId], lines);
    },
  });
}

async function openOrder({ client, terminal, options, once }: ApiCall<OpenOptions>) {
  const { buyer, supplier, buyerOrganization, supplierOrganization } = options;
  if ((buyer === undefined) === (supplier === undefined) || options.purpose !== undefined) {
    throw usageError('Give --buyer if you are the supplier, --supplier if you are the buyer, or --counterparty.');
  }
  const idOf = async (actor: string | undefined) => (actor === undefined ? undefined : actorIdOf(terminal, actor));
  const request = {
    buyerActorId: await idOf(buyer),
    supplierActorId: await idOf(supplier),
    buyerOrganizationId: buyerOrganization,
    supplierOrganizationId: supplierOrganization,
  };
  const ledger = await client.createLedger(request, once);
  const lines = recordLines({
    ledger: ledger.id,
    type: ledger.ledgerType,
    status: ledger.status,
    buyer: ledger.buyerActorId,
    supplier: ledger.supplierActorId,
  });
  return answered('createLedger', ledger, [ledger.id], lines);
}

async function openEngagement({ client, terminal, options, once }: ApiCall<OpenOptions>) {
  const { buyer, supplier, counterparty, purpose } = options;
  if (buyer !== undefined || supplier !== undefined || counterparty === undefined || purpose === undefined)
    throw usageError('An engagement has --counterparty and --purpose, and no --buyer or --supplier.');
  const counterpartyActorId = await actorIdOf(terminal, counterparty);
  const ledger = await client.createEngagement({ counterpartyActorId, purpose }, once);
  const lines = recordLines({
    ledger: ledger.ledgerId,
    type: ledger.ledgerType,
    status: ledger.status,
    primary: ledger.primaryActorId,
    counterparty: ledger.counterpartyActorId,
    purpose: ledger.purpose,
  });
  return answered('createEngagement', ledger, [ledger.ledgerId], lines);
}
