import type { Command } from 'commander';
import { fileSink } from '../terminal/sink.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { addApiCommand, listOption, option, type PageOptions, pageOf, pageOptions } from './api-command.ts';
import { answered, recordLines, tableLines } from './shown-answer.ts';

interface CreateOptions {
  readonly type?: readonly string[];
  readonly ledger?: string;
  readonly secretOut?: string;
}

/** `ledger-trust webhooks`. */
export function addWebhookCommands(program: Command, terminal: Terminal): void {
  const webhooks = program.command('webhooks').description('Subscribe receivers to events. To receive here: listen.');

  addApiCommand<PageOptions>(webhooks, terminal, {
    usage: 'list',
    description: 'List your subscriptions, by creation time.',
    kind: 'read',
    options: pageOptions(),
    async run({ client, options }) {
      const answer = await client.listWebhooks(pageOf(options));
      const rows = answer.subscriptions.map((webhook) => [
        webhook.id,
        webhook.active ? 'active' : 'ended',
        webhook.ledgerId ?? 'all',
        webhook.eventTypes.join(',') || 'all',
        webhook.url,
      ]);
      const ids = answer.subscriptions.map(({ id }) => id);
      return answered('listWebhooks', answer, ids, tableLines(['webhook', 'status', 'ledger', 'types', 'url'], rows));
    },
  });

  addApiCommand<CreateOptions>(webhooks, terminal, {
    usage: 'create <url>',
    description:
      'Subscribe a receiver to the events that you may read. Keep its secret: only a retry with the same --idempotency-key shows it again.',
    kind: 'keyed',
    options: [
      listOption('--type <type>', 'events of this type alone'),
      option('--ledger <uuid>', 'events of this ledger alone'),
      option('--secret-out <file>', 'write the secret there, readable by you alone, in place of showing it'),
    ],
    async run({ client, args: [url = ''], options, once }) {
      const { ledger: ledgerId, secretOut } = options;
      // Opened first, so that no subscription is made whose secret then cannot be kept.
      await using sink = secretOut === undefined ? null : await fileSink(secretOut);
      const webhook = await client.createWebhook({ url, eventTypes: [...(options.type ?? [])], ledgerId }, once);
      await sink?.write(webhook.secret);
      await sink?.keep();
      const shown =
        secretOut === undefined ? webhook : { ...webhook, secret: '', note: `The secret is in ${secretOut}.` };
      const lines = recordLines({
        webhook: shown.id,
        url: shown.url,
        types: shown.eventTypes.join(',') || 'all',
        ledger: shown.ledgerId ?? 'all',
        secret: shown.secret || undefined,
        note: shown.note,
      });
      return answered('createWebhook', shown, [shown.id], lines);
    },
  });

  addApiCommand(webhooks, terminal, {
    usage: 'delete <webhook>',
    description: 'End a subscription.',
    kind: 'keyed',
    async run({ client, args: [id = ''], once }) {
      const answer = await client.deleteWebhook({ id }, once);
      return answered('deleteWebhook', answer, [id], recordLines({ webhook: id, status: 'ended' }));
    },
  });

  addApiCommand<PageOptions>(webhooks, terminal, {
    usage: 'deliveries <webhook>',
    description: 'List the deliveries of a subscription, by creation time.',
    kind: 'read',
    options: pageOptions(),
    async run({ client, args: [id = ''], options }) {
      const answer = await client.listWebhookDeliveries({ id, ...pageOf(options) });
      const rows = answer.deliveries.map((delivery) => [
        delivery.id,
        delivery.createdAt,
        delivery.status,
        delivery.attempt,
        delivery.lastResponseStatus,
        delivery.nextAttemptAt,
        delivery.eventType,
        delivery.lastError,
      ]);
      const columns = ['delivery', 'created', 'status', 'retries', 'answer', 'next', 'type', 'error'];
      const ids = answer.deliveries.map((delivery) => delivery.id);
      return answered('listWebhookDeliveries', answer, ids, tableLines(columns, rows));
    },
  });

  addApiCommand(webhooks, terminal, {
    usage: 'test <webhook>',
    description: 'Send a PING to the receiver.',
    kind: 'keyed',
    async run({ client, args: [id = ''], once }) {
      const answer = await client.testWebhook({ id }, once);
      return answered('testWebhook', answer, [answer.delivery.id], deliveryLines(answer.delivery));
    },
  });

  addApiCommand(webhooks, terminal, {
    usage: 'redeliver <webhook> <delivery>',
    description: 'Send the event of a delivery again, as a new delivery.',
    kind: 'keyed',
    async run({ client, args: [id = '', deliveryId = ''], once }) {
      const answer = await client.redeliverWebhook({ id, deliveryId }, once);
      return answered('redeliverWebhook', answer, [answer.delivery.id], deliveryLines(answer.delivery));
    },
  });
}

interface Delivery {
  readonly id: string;
  readonly eventType: string;
  readonly status: string;
}

function deliveryLines({ id, eventType, status }: Delivery): string[] {
  return recordLines({ delivery: id, type: eventType, status });
}
