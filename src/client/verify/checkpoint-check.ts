import { platformCrypto } from '../../domain/keys/crypto.ts';
import type { Checkpoint } from '../../domain/log/checkpoint.ts';
import { CompactRange } from '../../domain/log/compact-range.ts';
import { type LogKind, parseOrigin } from '../../domain/log/origin.ts';
import { isSameHash, leafHash } from '../../domain/log/tree.ts';
import type { Event } from '../event.ts';
import { type Tail, TailCount } from './tail.ts';
import type { CheckpointCoverage, CheckpointIssueType } from './verification.ts';

interface CheckpointFinding {
  readonly type: CheckpointIssueType | 'checkpoint_unchecked';
  readonly detail: string;
}

/** Compares the events with checkpoints, all of which count. The hashes of the events are checked elsewhere. */
export class CheckpointChecks {
  readonly #checks: readonly CheckpointCheck[];

  /** `checkpoints`: verified, of ledger logs or master logs. TypeError for another origin. */
  constructor(checkpoints: readonly Checkpoint[]) {
    this.#checks = checkpoints.map((checkpoint) => new CheckpointCheck(checkpoint));
  }

  take(event: Event): void {
    for (const check of this.#checks) check.take(event);
  }

  /** The one that vouches for the most events comes first. */
  coverage(): readonly CheckpointCoverage[] {
    const vouchedFor = ({ size, verified }: CheckpointCoverage) => (verified ? size : 0);
    return this.#checks.map((check) => check.coverage()).sort((a, b) => vouchedFor(b) - vouchedFor(a));
  }

  /** The last events, whose place no checkpoint signs. null: no checkpoint signs the place of any event. */
  uncovered(): Tail | null {
    const tails = this.#checks.map((check) => check.uncovered()).filter((tail) => tail !== null);
    return tails.reduce<Tail | null>(
      (least, tail) => (least === null || tail.count < least.count ? tail : least),
      null,
    );
  }

  /** `isWhole`: the events are all of the ledger or master that there are. */
  findings(isWhole: boolean): readonly CheckpointFinding[] {
    const findings = this.#checks.map((check) => check.finding(isWhole)).filter((finding) => finding !== null);
    // Two that contradict each other are found so even where the events are not at hand.
    const contradicting = this.#checks.find((one, at) =>
      this.#checks.slice(at + 1).some((other) => one.contradicts(other)),
    );
    if (contradicting === undefined || findings.some(({ type }) => type === 'wrong_checkpoint')) return findings;
    const detail = `two checkpoints of ${contradicting.size} events have different roots`;
    return [...findings, { type: 'wrong_checkpoint', detail }];
  }
}

/** Recomputes the root of a checkpoint from the events of its log. */
class CheckpointCheck {
  readonly #checkpoint: Checkpoint;
  readonly #kind: LogKind;
  readonly #id: string;
  readonly #range = new CompactRange();
  /** An event is missing before the last one that the checkpoint covers. */
  #hasGap = false;
  readonly #behind = new TailCount();
  /** The events of other logs: the root says nothing of their place. */
  #ofOthers = 0;

  constructor(checkpoint: Checkpoint) {
    const origin = parseOrigin(checkpoint.origin);
    if (origin === null) throw new TypeError(`${JSON.stringify(checkpoint.origin)} is no ledger log or master log`);
    this.#checkpoint = checkpoint;
    this.#kind = origin.kind;
    this.#id = origin.id;
  }

  get size(): number {
    return this.#checkpoint.size;
  }

  contradicts(other: CheckpointCheck): boolean {
    const isSameLog = this.#kind === other.#kind && this.#id === other.#id;
    return isSameLog && this.size === other.size && !isSameHash(this.#checkpoint.root, other.#checkpoint.root);
  }

  take(event: Event): void {
    const isOfLog = this.#kind === 'ledger' ? event.ledgerId === this.#id : event.masterId === this.#id;
    const index = this.#kind === 'ledger' ? event.seq : event.masterSeq;
    if (!isOfLog || index === null) this.#ofOthers += 1;
    else if (index >= this.#checkpoint.size) this.#behind.add(event);
    else if (index === this.#range.size) this.#range.append(leafHash(platformCrypto.fromHex(this.#record(event))));
    else this.#hasGap = true;
  }

  #record({ hash, contentHash }: Event): string {
    return this.#kind === 'ledger' ? hash : contentHash;
  }

  coverage(): CheckpointCoverage {
    const { origin, size } = this.#checkpoint;
    return { origin, size, verified: this.#isSameRoot(), notCovered: this.#behind.tail.count };
  }

  /** The last events, whose place the checkpoint does not sign. null: it does not sign the place of any event. */
  uncovered(): Tail | null {
    return this.#isSameRoot() && this.#ofOthers === 0 ? this.#behind.tail : null;
  }

  /** `isWhole`: the events are all of the ledger or master that there are. null: the root is that of the events. */
  finding(isWhole: boolean): CheckpointFinding | null {
    const { size } = this.#checkpoint;
    if (this.#isSameRoot()) return null;
    const known = this.#range.size;
    if (known === size || (isWhole && (this.#hasGap || this.#behind.tail.count > 0)))
      return { type: 'wrong_checkpoint', detail: `the first ${size} events do not have the root of the checkpoint` };
    if (isWhole)
      return {
        type: 'shorter_than_checkpoint',
        detail: `the checkpoint covers ${size} events, and there are only ${known}`,
      };
    return {
      type: 'checkpoint_unchecked',
      detail: `the checkpoint covers ${size} events, and not all of them are at hand`,
    };
  }

  #isSameRoot(): boolean {
    const { size, root } = this.#checkpoint;
    return !this.#hasGap && this.#range.size === size && isSameHash(this.#range.root(), root);
  }
}
