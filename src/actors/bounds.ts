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
/** How often it is looked who has waited for long enough, and whether there is time to spare again. */
export const batchTickMs = 25;

/** Waiting commands of one ledger: 64 commits, on LMDB half as many larger ones, about a second of work. */
export const mailboxCommandsMax = 4_096;
export const mailboxBytesMax = 32 * 1024 * 1024;
export const mailboxLimits = { commandsMax: mailboxCommandsMax, bytesMax: mailboxBytesMax } as const;

/** A snapshot is saved at least this often, so that a tail to replay stays below 1,024 events (two times this, and a batch each) even when one save is late. */
export const snapshotEveryEvents = 384;
/** After a save that failed the next one is tried this many events later. */
export const snapshotRetryEvents = 64;
/** What leaves memory with a shorter tail than this is not saved: reading so few events again costs less than a write. */
export const snapshotWhenLeavingEvents = 64;
/** Events read at once while a state is rebuilt. */
export const replayPageEvents = 256;

/** Masters that one ledger's actor keeps in memory; the rest is loaded again when it is needed. */
export const mastersInMemoryMax = 1_024;
/** A ledger without a command for this long leaves memory. */
export const passivateAfterMs = 60_000;
/** Ledgers in memory; beyond it those leave early that had no command for a second. */
export const ledgersInMemoryMax = 10_000;
export const passivateWhenCrowdedAfterMs = 1_000;
/** Ledgers loaded after which it is looked whether there are too many, without waiting for the next regular look. */
export const ledgersLoadedBetweenLooks = 1_000;

/** How old the keys that a turn read may be when it is decided. A cluster dates a revocation two seconds ahead, and caches keys for one. */
export const keysReadAgeMaxMs = 500;
/** How often a busy ledger looks for commands whose time is up: what their answer may be late by. */
export const deadlineCheckMs = 50;

/** How long a command may take, from its call's arrival, where its caller names no shorter time (architecture.md). */
export const commandTimeoutMs = 10_000;

/** Nodes that a command is sent to before it is carried out here. */
export const hopsMax = 2;

/** How long an owner leaves its ledger to one that fenced it, in turns of its own: time to write what that one claimed it for. */
export const yieldTurns = 1.5;
/** So many times that at most, where others need more. */
export const patienceMax = 8;
/** What is left of that each time one was done in time. */
export const patienceKept = 0.8;
/** The longest that it may be, before jitter, which doubles it at most. */
export const yieldMaxMs = 400;
/** Lost races for a claim in a row behind which it waits for a while at least. */
export const claimRacesBeforeBackoff = 2;
/** So long, however fast its turns are. */
export const claimBackoffMinMs = 25;
/** The longest rest between claims that are to settle a write. */
export const settleRestMaxMs = 200;

/**
 * What a node may keep of the marks that its ledgers' commands of a day have: two bytes each where filters are full, 1.5 KB for each ledger at least. A small part of
 * the memory of a node, and a day of 350 commands a second.
 */
export const recentKeysBytesMax = 64 * 1024 * 1024;

/** Number of shards of a new store (cluster.md). */
export const defaultShardCount = 256;
