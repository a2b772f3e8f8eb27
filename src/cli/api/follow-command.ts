import type { Command } from 'commander';
import { eventToJson } from '../../client/call/answer-encoding.ts';
import type { FollowedEvent } from '../../client/follow/follow-api.ts';
import { shownJson, shownText } from '../terminal/shown-text.ts';
import { type Terminal, usageError } from '../terminal/terminal.ts';
import { addApiCommand, numberOption, option, sentenceOf } from './api-command.ts';

interface FollowCommandOptions {
  readonly master?: string;
  readonly from?: number;
  readonly segment?: boolean;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

/**
 * `ledger-trust follow`: prints each event of a ledger or a master as it is written, and what of it was checked. It has
 * no filters: they would leave gaps, in which a missing event would not show.
 */
export function addFollowCommand(program: Command, terminal: Terminal): void {
  addApiCommand<FollowCommandOptions>(program, terminal, {
    usage: 'follow [ledger]',
    description:
      'Print each event of a ledger or a master as soon as it is written, verified here, until it is closed or you interrupt. With --json a line of JSON an event.',
    kind: 'read',
    options: [
      option('--master <uuid>', 'the events of this master alone'),
      numberOption('--from <seq>', 'from this event on: its seq, with --master its master_seq; else only new events'),
      option('--segment', 'you may read only some masters of the ledger, so that gaps are expected'),
    ],
    async run({ client, args: [ledger = ''], options }) {
      const { master: masterId, from, segment = false } = options;
      if (ledger === '' && masterId === undefined)
        throw usageError('Give the id of a ledger, or --master and that of a master.');
      const request = {
        ...(ledger === '' ? {} : { ledgerId: ledger }),
        ...(masterId === undefined ? {} : { masterId }),
        ...(from === undefined ? {} : { after: from - 1 }),
        segment,
      };
      const leaving = new AbortController();
      const interrupted = (): void => leaving.abort();
      process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
      try {
        const events = client.follow(request, {
          signal: leaving.signal,
          onCaughtUp: ({ seq }) => terminal.tell(`Caught up at seq ${seq}: new events follow.\n`),
          onRetry: ({ error, waitMs }) => {
            const wait = `Trying again in ${(waitMs / 1_000).toFixed(1)} s.`;
            terminal.tell(`${shownText(sentenceOf(error))} ${wait}\n`);
          },
        });
        for await (const event of events) await terminal.print(`${lineOf(event, options, masterId !== undefined)}\n`);
        terminal.tell('Closed: nothing more follows.\n');
      } catch (error) {
        if (!leaving.signal.aborted) throw error;
      } finally {
        process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
      }
      return null;
    },
  });
}

function lineOf(event: FollowedEvent, { json, quiet }: FollowCommandOptions, ofMaster: boolean): string {
  const { checks } = event;
  if (json) {
    const checked = {
      content_hash: checks.contentHash,
      chain_hash: checks.chainHash,
      actor_signature: checks.actorSignature,
      authority_seal: checks.authoritySeal,
    };
    return shownJson(`{"event":${eventToJson(event)},"checks":${JSON.stringify(checked)}}`);
  }
  if (quiet) return shownText(event.id);
  const sealOrSignature =
    event.actorSig === null ? mark(checks.authoritySeal, 'seal') : mark(checks.actorSignature, 'signature');
  const marks = [mark(checks.contentHash, 'content'), mark(checks.chainHash, 'chain'), sealOrSignature].join(' ');
  const place = ofMaster ? event.masterSeq : event.seq;
  return shownText(`${place}  ${event.createdAt}  ${marks}  ${event.id}  ${event.actorId ?? '-'}  ${event.eventType}`);
}

/** An event that does not verify ends the command, so what has no tick could not be checked. */
function mark(isChecked: boolean, what: string): string {
  return `${isChecked ? '✓' : '?'} ${what}`;
}
