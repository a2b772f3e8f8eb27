/** Mistakes that the simulation must find, planted one at a time. */
export type PlantedBug =
  /** Batches of events go in whatever fence and head say. */
  | 'unconditional_append'
  /** Refusals are given without asking whether claim and head still stand. */
  | 'stale_refusal'
  /** Who claims a ledger does not finish the projections of whoever wrote before. */
  | 'foreign_projections_skipped'
  /** A projection that comes late replaces a newer one. */
  | 'older_projection_wins'
  /** A command loses its id on the way to another node. */
  | 'resubmitted_without_id'
  /**
   * The first batch of a bucket goes in without a look at the end of the one before, and on no condition. These are two
   * locks of one door: a full bucket never changes and is claimed by the fence of the next one, so a writer that goes by its own last
   * write is stopped by the condition on that fence alone, and without the look nothing is to be found (none of 500 seeds). What the look
   * stops is a caller that seals what it did not write, as no actor does: test/contract/cassandra-buckets.test.ts.
   */
  | 'bucket_unchecked';

export const plantedBugs: readonly PlantedBug[] = [
  'unconditional_append',
  'stale_refusal',
  'foreign_projections_skipped',
  'older_projection_wins',
  'resubmitted_without_id',
  'bucket_unchecked',
];
