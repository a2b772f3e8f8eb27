import type { Command } from 'commander';
import type { Terminal } from '../terminal/terminal.ts';
import { addApiCommand, neededOption, option, type RangeOptions, rangeOf, rangeOptions } from './api-command.ts';
import { answered, cursorLines, recordLines, tableLines } from './shown-answer.ts';

interface CreateOptions {
  readonly ref: string;
  readonly scope: string;
}

interface ListOptions extends RangeOptions {
  readonly ref?: string;
  readonly scope?: string;
  readonly status?: string;
}

/** `ledger-trust masters`. */
export function addMasterCommands(program: Command, terminal: Terminal): void {
  const masters = program.command('masters').description('List, show, create and close masters.');

  addApiCommand<ListOptions>(masters, terminal, {
    usage: 'list <ledger>',
    description: 'List the masters of a ledger that you may read, by creation time.',
    kind: 'read',
    options: [
      option('--ref <text>', 'with this reference'),
      option('--scope <scope>', 'of this scope'),
      option('--status <status>', 'of this status').choices(['OPEN', 'CLOSED']),
      ...rangeOptions(),
    ],
    async run({ client, args: [ledgerId = ''], options }) {
      const { ref: businessRef, scope, status } = options;
      const answer = await client.listMasters({ ledgerId, businessRef, scope, status, ...rangeOf(options) });
      const rows = answer.masters.map((master) => [
        master.uuid,
        master.status,
        master.createdAt,
        master.scope,
        master.businessRef,
      ]);
      const columns = ['master', 'status', 'created', 'scope', 'ref'];
      const lines = [...tableLines(columns, rows), ...cursorLines(answer.nextCursor)];
      const ids = answer.masters.map(({ uuid }) => uuid);
      return answered('listMasters', answer, ids, lines);
    },
  });

  addApiCommand(masters, terminal, {
    usage: 'show <master>',
    description: 'Show a master.',
    kind: 'read',
    async run({ client, args: [uuid = ''] }) {
      const master = await client.getMaster({ uuid });
      return answered('getMaster', master, [master.uuid], linesOf(master));
    },
  });

  addApiCommand<CreateOptions>(masters, terminal, {
    usage: 'create <ledger>',
    description: 'Make a master in a ledger: it groups the events of one order or process.',
    kind: 'keyed',
    options: [
      neededOption('--ref <text>', 'your reference, for example PO-2026-0001'),
      neededOption('--scope <scope>', 'what it groups').default('ORDER'),
    ],
    async run({ client, args: [ledgerId = ''], options, once }) {
      const master = await client.createMaster({ ledgerId, businessRef: options.ref, scope: options.scope }, once);
      return answered('createMaster', master, [master.uuid], linesOf(master));
    },
  });

  addApiCommand(masters, terminal, {
    usage: 'close <master>',
    description: 'Close a master: no event can follow but revocations.',
    kind: 'keyed',
    async run({ client, args: [uuid = ''], once }) {
      const answer = await client.closeMaster({ uuid }, once);
      const lines = recordLines({
        master: answer.traceledgerMasterUuid,
        ledger: answer.ledgerId,
        status: answer.status,
      });
      return answered('closeMaster', answer, [answer.traceledgerMasterUuid], lines);
    },
  });
}

interface Master {
  readonly uuid: string;
  readonly ledgerId: string;
  readonly businessRef: string;
  readonly scope: string;
  readonly status: string;
}

function linesOf({ uuid, ledgerId, businessRef, scope, status }: Master): string[] {
  return recordLines({ master: uuid, ledger: ledgerId, status, scope, ref: businessRef });
}
