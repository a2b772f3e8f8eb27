/** Bounds of the actor model, each with its reason. */

/** Events in one commit, in any store. More gain little on Cassandra (64 rows reach 41,000 rows/s), and make the first one wait. */
export const batchEventsMax = 64;
/**
 * On LMDB: half of what waits for one ledger where that is more, and so many at most. There a commit takes longer in this process's queues
 * than on the disk, so that larger ones are more events a second on one hot ledger; the other half is under way to the next one meanwhile
 * (docs/performance.md). No commit has more, in any store.
 */
export const crowdedBatchEventsMax = 128;
/** Bytes in one commit: larger conditional batches run a small Cassandra heap out of memory. One event may be larger. */
export const batchBytesMax = 256 * 1024;
/** What an event adds to its payload in a row: content, hashes, signature. Only an estimate, for the two bounds above. */
export const eventOverheadBytes = 1_024;

/**
 * How ledgers of a saturated node wait before their turns; with as many turns as are free the store is busy. LMDB commits what several
 * ledgers write at once in one go, and within milliseconds: groups grow enough while others run. To Cassandra each commit is requests of its own, and
 * takes 100 ms and more where processors are short: there groups are waited for. Events of one of a hundred busy ledgers come some 70 ms
 * apart, several at a time (docs/performance.md, A cluster).
 */
export const batchPaces = {
  commitsTogether: { freeMax: 16, waitMaxMs: 100, quietMs: 0, crowdedMax: crowdedBatchEventsMax },
  commitsApart: { freeMax: 8, waitMaxMs: 500, quietMs: 350, crowdedMax: batchEventsMax },
} as const;
/** How often waiting batches are looked at, ms. */
export const batchTickMs = 25;

/** Waiting commands of one ledger: 64 commits, on LMDB half as many larger ones, about a second of work. */
export const mailboxCommandsMax = 4_096;
export const mailboxBytesMax = 32 * 1024 * 1024;
export const mailboxLimits = { commandsMax: mailboxCommandsMax, bytesMax: mailboxBytesMax } as const;

/** Events between two snapshots: a tail to replay stays below 1,024 events (twice this, and a batch each) if one save is late. */
export const snapshotEveryEvents = 384;
/** Events after a failed save until the next one. */
export const snapshotRetryEvents = 64;
/** A shorter tail is not saved when its owner leaves memory: to read so few events again costs less than a write. */
export const snapshotWhenLeavingEvents = 64;
/** Events read at once while a state is rebuilt. */
export const replayPageEvents = 256;

/** Masters that one ledger's actor keeps in memory. */
export const mastersInMemoryMax = 1_024;
/** A ledger without a command for this long leaves memory. */
export const passivateAfterMs = 60_000;
/** Ledgers in memory. Beyond it a ledger leaves after passivateWhenCrowdedAfterMs without a command. */
export const ledgersInMemoryMax = 10_000;
export const passivateWhenCrowdedAfterMs = 1_000;
/** After so many ledgers were loaded, idle ones are looked for at once. */
export const ledgersLoadedBetweenLooks = 1_000;

/** How old the keys may be that a batch is decided with, ms. A cluster dates a revocation 2 s ahead, and caches keys for 1 s. */
export const keysReadAgeMaxMs = 500;
/** How often a busy ledger looks for passed deadlines, ms: an answer may be so late. */
export const deadlineCheckMs = 50;

/** How long a command may take from the arrival of its call, ms, if its caller sets no earlier deadline. */
export const commandTimeoutMs = 10_000;

/** Nodes that a command is sent to before this node runs it. */
export const hopsMax = 2;

/** How long an actor waits after another node has fenced it, in batches of its own: time for the other node to write. */
export const backoffBatches = 1.5;
/** The most by which that is multiplied, if other nodes need longer. */
export const backoffFactorMax = 8;
/** What is left of that factor each time another node has written in time. */
export const backoffFactorKept = 0.8;
/** The longest wait, ms, before jitter, which at most doubles it. */
export const backoffMaxMs = 400;
/** After so many lost claims in a row, it waits at least claimBackoffMinMs. */
export const claimRacesBeforeBackoff = 2;
/** The shortest wait then, ms. */
export const claimBackoffMinMs = 25;
/** The longest pause between claims that find out whether a write landed, ms. */
export const settleRestMaxMs = 200;

/**
 * Memory for the keys of a node's recent commands, bytes: two bytes a key in a full filter, and at least 1.5 KB a ledger.
 * Enough for a day of 350 commands a second.
 */
export const recentKeysBytesMax = 64 * 1024 * 1024;

/** Number of shards of a new store. */
export const defaultShardCount = 256;
