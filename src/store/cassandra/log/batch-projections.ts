import type { Projection } from '../../../domain/event/projection.ts';
import type { EventProjections } from '../../store-inspection.ts';
import { intMax } from '../session/session.ts';

/**
 * The projections of one batch, in the form in which its bucket keeps them (`pending`) until the next batch. So a claim
 * completes the projections of another writer in the same way as its own.
 */
export interface BatchProjections {
  readonly bucket: number;
  readonly scopes: readonly string[];
  readonly commands: readonly (readonly [seq: number, id: string, fingerprint: string, permanent: 0 | 1])[];
  /** Only the newest value of each key. */
  readonly cells: readonly (readonly [key: string, seq: number, value: string])[];
  readonly lines: readonly (readonly [list: string, order: string, value: string])[];
}

export function projectionsOfBatch(bucket: number, entries: readonly EventProjections[]): BatchProjections {
  const scopes = new Set<string>();
  const commands: BatchProjections['commands'][number][] = [];
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
          commands.push([seq, id, fingerprint, permanent ? 1 : 0]);
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

export function formatPending({ bucket, scopes, commands, cells, lines }: BatchProjections): string {
  if (scopes.length + commands.length + cells.length + lines.length === 0) return '';
  return JSON.stringify([bucket, scopes, commands, cells, lines]);
}

/** Parses what formatPending returned. null if there are no projections. Throws for any other text. */
export function parsePending(text: string): BatchProjections | null {
  if (text === '') return null;
  const [bucket, scopes, commands, cells, lines] = JSON.parse(text) as [
    number,
    BatchProjections['scopes'],
    BatchProjections['commands'],
    BatchProjections['cells'],
    BatchProjections['lines'],
  ];
  const isText = (value: unknown) => typeof value === 'string';
  const isSeq = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
  const isWhole =
    isSeq(bucket) &&
    bucket <= intMax &&
    scopes.every(isText) &&
    commands.every(([seq, id, fingerprint]) => isSeq(seq) && isText(id) && isText(fingerprint)) &&
    cells.every(([key, seq, value]) => isText(key) && isSeq(seq) && isText(value)) &&
    lines.every((line) => line.length === 3 && line.every(isText));
  if (!isWhole) throw new TypeError('These are no projections of a batch.');
  return { bucket, scopes, commands, cells, lines };
}

/** Whether projections may be those of a bucket's newest batch, which ends with event `lastSeq`. */
export function areOfBucket(projections: BatchProjections, bucket: number, lastSeq: number): boolean {
  const { commands, cells } = projections;
  const seqs = [...commands.map(([seq]) => seq), ...cells.map(([, seq]) => seq)];
  return projections.bucket === bucket && seqs.every((seq) => seq <= lastSeq);
}

export function pendingProjections(pending: BatchProjections | null): Projection[] {
  if (pending === null) return [];
  return [
    ...pending.scopes.map((scope): Projection => ({ kind: 'scope', scope })),
    ...pending.commands.map(([, id, fingerprint, permanent]): Projection => {
      return { kind: 'command', command: { id, fingerprint, permanent: permanent === 1 } };
    }),
    ...pending.cells.map(([key, , value]): Projection => ({ kind: 'cell', key, value })),
    ...pending.lines.map(([list, order, value]): Projection => ({ kind: 'line', list, order, value })),
  ];
}
