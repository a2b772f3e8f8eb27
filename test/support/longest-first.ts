import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take 8 s and more, longest first. */
const longest = [
  'test/unit/rpc/http/unread-answers.test.ts',
  'test/unit/rpc/hostile.test.ts',
  'test/unit/cluster/peers-unanswered.test.ts',
  'test/unit/rpc/http/tls.test.ts',
  'test/unit/rpc/http/keep-alive.test.ts',
  'test/unit/rpc/grpc/attacks.test.ts',
  'test/unit/cluster/local.test.ts',
  'test/cluster/verify.test.ts',
  'test/cluster/following.test.ts',
  'test/cluster/operations.test.ts',
  'test/api/process-stop.test.ts',
  'test/docs/readme.test.ts',
  'test/simulation/seeds.test.ts',
  'test/contract/cassandra-store.test.ts',
  'test/cluster/readiness.test.ts',
  'test/api/process-start.test.ts',
  'test/api/access-matrix.test.ts',
  'test/cluster/finish.test.ts',
  'test/cluster/verify-rows.test.ts',
  'test/cluster/copy.test.ts',
  'test/api/crash-retries.test.ts',
  'test/contract/cassandra-access-log.test.ts',
  'test/contract/cassandra-faults.test.ts',
  'test/contract/cassandra-deleted-rows.test.ts',
  'test/contract/lmdb-disk.test.ts',
  'test/contract/cassandra-schema.test.ts',
  'test/api/production.test.ts',
  'test/api/crash-load.test.ts',
  'test/api/client-follow-checkpoints.test.ts',
  'test/api/sandbox.test.ts',
  'test/api/input-fields.test.ts',
  'test/cluster/verify-buckets.test.ts',
  'test/contract/cassandra-buckets.test.ts',
  'test/contract/cassandra-given-up-rows.test.ts',
  'test/cluster/verify-trees.test.ts',
  'test/api/process-output.test.ts',
  'test/cluster/production.test.ts',
  'test/contract/cassandra-filling.test.ts',
  'test/api/webhook-crash.test.ts',
  'test/api/restored-copy.test.ts',
  'test/contract/lmdb-backup.test.ts',
  'test/api/client-proofs.test.ts',
  'test/api/audit.test.ts',
  'test/simulation/planted-bugs.test.ts',
  'test/contract/cassandra-trees.test.ts',
  'test/api/client-follow.test.ts',
  'test/cluster/copy-killed.test.ts',
  'test/api/access-ids.test.ts',
  'test/cluster/campaign-aims.test.ts',
];

/**
 * The long test files of a group come first, so that no worker is left with one of them when the others have nothing to
 * do any more. Vitest orders by how long files took only where it has run before, which it never has in a fresh clone.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = longest.findIndex((file) => moduleId.endsWith(file));
      return at < 0 ? longest.length : at;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}
