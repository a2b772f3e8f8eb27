import { eventTextsBytesMax } from '../domain/event/text-size.ts';

/** Bounds of the actor model, each with its reason. test/unit/runtime/bounds.test.ts checks how they relate. */

/** Events in one commit that every store takes. On Cassandra more gain little (64 rows reach 41,000 rows/s). */
export const batchEventsMax = 64;
/** On LMDB a commit waits longer in this process than on the disk: larger ones are faster on a hot ledger. */
export const largestBatchEvents = 128;
/** Bytes in one commit. Larger conditional batches exhaust a small Cassandra heap. A single event may be larger. */
export const batchBytesMax = 256 * 1024;
/** Most bytes of a row beside payload and signed form: content, hashes, signature, seal, command keys. */
export const rowFrameBytesMax = 4 * 1024;
/**
 * Bytes of a row: a payload of 256 KiB as it is stored and as it was signed, with what the service adds. Every store
 * takes such a row, and every transport sends its event beside a page. Rows from before this bound may be larger.
 */
export const rowBytesMax = eventTextsBytesMax + rowFrameBytesMax;
/** What a row adds to an event's payload: content, hashes, signature. An estimate, for bounds in bytes. */
export const eventOverheadBytes = 1_024;

/**
 * LMDB writes the commits of several ledgers together: a batch of a saturated node waits until another one ends. On
 * Cassandra it waits for more commands (docs/adr/0038-batches-wait-on-a-saturated-node.md).
 */
export const batchLimits = {
  commitsTogether: {
    maxEvents: largestBatchEvents,
    maxBytes: batchBytesMax,
    freeBatches: 16,
    maxDelayMs: 100,
    startsWhenOneEnds: true,
  },
  commitsApart: {
    maxEvents: batchEventsMax,
    maxBytes: batchBytesMax,
    freeBatches: 8,
    maxDelayMs: 350,
    startsWhenOneEnds: false,
  },
} as const;

/** Waiting commands of one ledger: about a second of work. */
export const mailboxCommandsMax = 4_096;
export const mailboxBytesMax = 32 * 1024 * 1024;
export const mailboxLimits = { commandsMax: mailboxCommandsMax, bytesMax: mailboxBytesMax } as const;

export const snapshotEveryEvents = 384;
/** Events after a failed save until the next one. */
export const snapshotRetryEvents = 64;
/** A shorter tail is not saved when its owner leaves memory: reading it again costs less than a write. */
export const snapshotWhenLeavingEvents = 64;
/** While so many characters of snapshots are at the store, no further save begins. In memory each has three copies. */
export const snapshotCharsAtStoreMax = 4 * 1024 * 1024;
/** What a save costs beside the characters of its state, in characters. */
export const snapshotFrameChars = 4 * 1024;
/**
 * A ledger that is handed over begins no save after this time, and waits for none any more, so that its shard does not
 * wait for a slow store.
 */
export const snapshotsLeavingMaxMs = 1_000;
/** Events of a page of a replay; fewer if they are large (pageCharsMax). */
export const replayPageEvents = 256;

/** Masters of one ledger in memory: some KB each, and 250 bytes for each of their grants (at most delegatesMax). */
export const mastersInMemoryMax = 1_024;
/** A ledger without a command for this long leaves memory. */
export const passivateAfterMs = 60_000;
/** Ledgers in memory. Beyond it a ledger leaves after passivateWhenFullAfterMs without a command. */
export const ledgersInMemoryMax = 10_000;
export const passivateWhenFullAfterMs = 1_000;
/** After loading this many ledgers, idle ones leave memory at once. */
export const ledgersLoadedBetweenSweeps = 1_000;

/** The greatest age of the keys that a batch is decided with, ms. */
export const keysReadAgeMaxMs = 500;
/** How often busy ledgers check for passed deadlines, ms. A refusal may be late by this much. */
export const deadlineCheckMs = 50;

/** Nodes that a command is sent to before this node runs it. */
export const hopsMax = 2;

/** The wait after another node has fenced an actor, as a multiple of its own batches' duration. */
export const backoffBatches = 1.5;
/** The greatest factor on that wait, and the share of the factor that is left when another node has written in time. */
export const backoffFactorMax = 8;
export const backoffFactorKept = 0.8;
/** The longest wait, ms, before jitter, which at most doubles it. */
export const backoffMaxMs = 400;
/** After so many lost claims in a row, the wait is at least claimBackoffMinMs. */
export const claimRacesBeforeBackoff = 2;
export const claimBackoffMinMs = 25;
/** The longest pause between claims that find out whether a write landed, ms. */
export const settleRestMaxMs = 200;

export const defaultShardCount = 256;
