import type { RecordStore } from '../../store/record-store.ts';
import type { WholeRecord } from '../../store/whole-store.ts';
import { forEachConcurrently } from '../scrub/for-each-concurrently.ts';
import { CopyRefused } from './refusal.ts';

const putsAtOnceMax = 32;

/**
 * Kind and id of the records that identify the installation a store belongs to, and what differs if the target belongs
 * to another one.
 */
const ownerRecords = [
  ['authority', 'keys', 'its events are sealed by another authority'],
  ['node', 'secrets-key', 'its secrets are encrypted under another key'],
] as const;

/**
 * Throws CopyRefused if the target belongs to other keys, because copied data could neither be verified nor decrypted
 * there, and if the source has never been served by a node.
 */
export async function checkOwner(source: RecordStore, target: RecordStore): Promise<void> {
  for (const [kind, id, how] of ownerRecords) {
    const [ours, theirs] = await Promise.all([source.get(kind, id), target.get(kind, id)]);
    if (ours === null)
      throw new CopyRefused('No node has ever served this data: there is nothing to copy; check DATA_DIR.');
    if (theirs !== null && theirs.value !== ours.value)
      throw new CopyRefused(
        `The target belongs to another installation (${how}): copy into a keyspace that no node has served yet.`,
      );
  }
}

interface RecordCopyParts {
  readonly records: Iterable<WholeRecord>;
  readonly target: RecordStore;
  readonly nowMs: number;
  readonly copied: () => void;
  /** Called with a sentence for each record that the target has with another value. */
  readonly refused: (sentence: string) => void;
}

/**
 * Puts every record that has not expired, where the target has none of this kind and id. A record that the target has
 * with the same value needs nothing. `copied` is called for every record.
 */
export async function copyRecords({ records, target, nowMs, copied, refused }: RecordCopyParts): Promise<void> {
  await forEachConcurrently(records, putsAtOnceMax, async (record) => {
    if (record.expiresAt === undefined || record.expiresAt > nowMs) {
      const put = await target.put({ ...record, replaces: 'absent' });
      if (!put.ok && put.current?.value !== record.value)
        refused(
          `The ${record.kind} ${record.id} stands in the target as another one, and is left as it is: it was changed there, or here since it was copied.`,
        );
    }
    copied();
  });
}
