import type { Registry } from 'prom-client';
import type { Log } from '../runtime/telemetry/log.ts';
import { metricsIn } from '../runtime/telemetry/metrics.ts';
import { onUnreadable } from '../store/unreadable-record.ts';

/** Records that the log names. Further ones are only counted. */
const namedMax = 1_000;
/** The service has few kinds, but a damaged row may hold any text. */
const kindsMax = 64;

/** Logs and counts unreadable records. Returns a function that stops it. */
export function watchUnreadable({ log, registry }: { readonly log: Log; readonly registry: Registry }): () => void {
  const named = new Set<string>();
  // Its alarm waits for it to rise: no other kinds may take its place.
  const kinds = new Set(['authority']);
  const counter = metricsIn(registry).counter({
    name: 'svc_unreadable_records_total',
    help: 'Stored records that could not be read and were passed over, by kind, each time that one was met.',
    labelNames: ['kind'],
  });
  for (const kind of kinds) counter.inc({ kind }, 0);
  return onUnreadable(({ kind, id, error }) => {
    if (kinds.size < kindsMax) kinds.add(kind);
    counter.inc({ kind: kinds.has(kind) ? kind : 'other' });
    const name = JSON.stringify([kind, id]);
    if (named.has(name) || named.size >= namedMax) return;
    named.add(name);
    log.error({ err: error, kind, id }, `a stored record cannot be read and is passed over: ${remedyOf(kind)}`);
  });
}

function remedyOf(kind: string): string {
  switch (kind) {
    case 'tile':
      return 'its hashes are computed anew from the events, so that nothing has to be done';
    case 'event':
      return 'restore it from a backup, and never remove it: no proof that covers it is made until then';
    case 'signed_head':
      return 'restore it from a backup, and never remove it, because its log would then count as never signed';
    case 'authority':
      return 'restore it from a backup, or confirm the list (`cluster confirm-authority`) if a version before 0.2.0 wrote it last, such as a rotation; never remove it, because a node would begin anew with its own keys';
    case 'log':
      return 'restore it from a backup, and never remove it, because a node would begin anew with its own keys';
    default:
      return 'restore it from a backup, or remove it';
  }
}
