import type { CommandKey } from '../../../domain/event/event.ts';
import type { Projection } from '../../../domain/event/projection.ts';
import type { EventProjections } from '../../projection-writer.ts';

/**
 * The projections of one batch. The bucket also keeps them (`pending`) until its next batch. Both have one form, so
 * that a claim completes the projections of another writer in the same way as its own.
 */
export interface BatchProjections {
  /** The bucket that the batch is in. */
  readonly bucket: number;
  /** Scopes that have events in the batch. */
  readonly scopes: readonly string[];
  readonly commands: readonly (readonly [seq: number, command: CommandKey])[];
  /** Only the newest value of each key. */
  readonly cells: readonly (readonly [key: string, seq: number, value: string])[];
  readonly lines: readonly (readonly [list: string, order: string, value: string])[];
}

export function projectionsOfBatch(bucket: number, entries: readonly EventProjections[]): BatchProjections {
  const scopes = new Set<string>();
  const commands: [number, CommandKey][] = [];
  const cells = new Map<string, readonly [string, number, string]>();
  const lines: [string, string, string][] = [];
  for (const { seq, projections } of entries)
    for (const projection of projections)
      switch (projection.kind) {
        case 'scope':
          scopes.add(projection.scope);
          break;
        case 'command': {
          const { id, fingerprint, permanent } = projection.command;
          commands.push([seq, { id, fingerprint, permanent }]);
          break;
        }
        case 'cell':
          cells.set(projection.key, [projection.key, seq, projection.value]);
          break;
        case 'line':
          lines.push([projection.list, projection.order, projection.value]);
          break;
      }
  return { bucket, scopes: [...scopes], commands, cells: [...cells.values()], lines };
}

/** Returns the stored text of projections, '' if there are none. */
export function formatPending({ bucket, scopes, commands, cells, lines }: BatchProjections): string {
  if (scopes.length + commands.length + cells.length + lines.length === 0) return '';
  const keys = commands.map(([seq, { id, fingerprint, permanent }]) => [seq, id, fingerprint, permanent ? 1 : 0]);
  return JSON.stringify([bucket, scopes, keys, cells, lines]);
}

type PendingForm = readonly [
  bucket: number,
  scopes: BatchProjections['scopes'],
  keys: readonly (readonly [seq: number, id: string, fingerprint: string, permanent: 0 | 1])[],
  cells: BatchProjections['cells'],
  lines: BatchProjections['lines'],
];

/** Parses what formatPending returned. null if there are no projections. Throws for any other text. */
export function parsePending(text: string): BatchProjections | null {
  if (text === '') return null;
  const [bucket, scopes, keys, cells, lines] = JSON.parse(text) as PendingForm;
  const isText = (value: unknown) => typeof value === 'string';
  const isSeq = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
  const isWhole =
    isSeq(bucket) &&
    scopes.every(isText) &&
    keys.every(([seq, id, fingerprint]) => isSeq(seq) && isText(id) && isText(fingerprint)) &&
    cells.every(([key, seq, value]) => isText(key) && isSeq(seq) && isText(value)) &&
    lines.every((line) => line.length === 3 && line.every(isText));
  if (!isWhole) throw new TypeError('These are no projections of a batch.');
  const commands = keys.map(([seq, id, fingerprint, permanent]) => {
    return [seq, { id, fingerprint, permanent: permanent === 1 }] as const;
  });
  return { bucket, scopes, commands, cells, lines };
}

/** Returns the projections of a batch one by one. */
export function pendingProjections(pending: BatchProjections | null): Projection[] {
  if (pending === null) return [];
  return [
    ...pending.scopes.map((scope): Projection => ({ kind: 'scope', scope })),
    ...pending.commands.map(([, command]): Projection => ({ kind: 'command', command })),
    ...pending.cells.map(([key, , value]): Projection => ({ kind: 'cell', key, value })),
    ...pending.lines.map(([list, order, value]): Projection => ({ kind: 'line', list, order, value })),
  ];
}
