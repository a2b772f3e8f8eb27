import type { CommandOutcome } from '../../actors/inbox/outcome.ts';
import { damagedReplay } from '../../actors/inbox/refusals.ts';
import type { Directory } from '../../actors/routing/directory.ts';
import { LedgerError, mayBeWritten } from '../../domain/errors.ts';
import type { CommandKey } from '../../domain/event/event.ts';
import { parseRow } from '../../domain/event/row.ts';
import type { Command, Lane, UnkeyedCommand } from '../../domain/ledger/command.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { AppendCall, Call } from '../calls/call.ts';
import { callerOf, demandEntitySignature } from '../calls/caller.ts';
import { commandKeysOf } from './command-key.ts';

interface SubmitOptions {
  /** The ledger of the command. null if there is none. Called only if the call is refused. */
  ledgerOf(): Promise<string | null>;
  /**
   * Whether the call is signed as an event. Where that signature is the only credential it must verify for a replay
   * too: an unverified call may come from anybody.
   */
  readonly isSignedEvent: boolean;
}

export type PreparedCommand =
  /** Validated and verified. `submit` runs it. */
  | { readonly kind: 'checked'; submit(lane: Lane | null): Promise<CommandOutcome> }
  /** It would be refused now, but was written before. It takes no place in a lane. */
  | { readonly kind: 'replayed'; readonly first: CommandOutcome };

/**
 * Submits commands to their ledgers so that each is written once, however often its call is sent. The ledger's actor
 * recognizes a command that was written before. This class finds the first outcome of calls that are refused before
 * they get there: the signing key or grant of a retry may have ended since.
 */
export class OnceSubmitter {
  readonly #directory: Directory;
  readonly #store: LedgerStore;

  constructor(directory: Directory, store: LedgerStore) {
    this.#directory = directory;
    this.#store = store;
  }

  /** Makes the command of a call and submits it. If either is refused, returns the call's first outcome if any. */
  async submitOnce(call: Call, options: SubmitOptions, make: () => Promise<UnkeyedCommand>): Promise<CommandOutcome> {
    if (options.isSignedEvent) demandEntitySignature(call);
    let outcome: CommandOutcome;
    try {
      outcome = await this.#submit(ofCall(call, await make()));
    } catch (error) {
      if (!(error instanceof LedgerError) || (options.isSignedEvent && callerOf(call).mustSign)) throw error;
      const first = await this.#first(call, options.ledgerOf).catch((unread: unknown) => {
        // An unknown outcome stays unknown: the look-up's `unavailable` would say that nothing was written.
        throw mayBeWritten(error) ? error : unread;
      });
      if (first === null) throw error;
      outcome = first;
    }
    if (outcome.replayed) call.markReplayed();
    return outcome;
  }

  /** The first half of `submitOnce` for a signed event of a stream, which is submitted in a lane. */
  async prepareOnce(
    call: AppendCall,
    ledgerOf: SubmitOptions['ledgerOf'],
    made: Promise<UnkeyedCommand>,
  ): Promise<PreparedCommand> {
    try {
      const command = ofCall(call, await made);
      return { kind: 'checked', submit: (lane) => this.#directory.submit({ ...command, lane }) };
    } catch (error) {
      const first = callerOf(call).mustSign ? null : await this.#first(call, ledgerOf);
      if (first === null) throw error;
      return { kind: 'replayed', first };
    }
  }

  /** If a command with the same key is in flight, the event that was written with the key is the outcome of both. */
  async #submit(command: Command): Promise<CommandOutcome> {
    try {
      return await this.#directory.submit(command);
    } catch (error) {
      if (!(error instanceof LedgerError) || error.code !== 'idempotency_in_progress') throw error;
      for (const key of command.commandKeys) {
        const first = await this.#written(command.ledgerId, key).catch(() => null);
        if (first !== null) return first;
      }
      throw error;
    }
  }

  /** The event that the call's idempotency key wrote to its ledger before. null if there is none. */
  async #first(
    { commandKey }: Pick<Call, 'commandKey'>,
    ledgerOf: SubmitOptions['ledgerOf'],
  ): Promise<CommandOutcome | null> {
    const ledgerId = commandKey === null ? null : await ledgerOf();
    return commandKey === null || ledgerId === null ? null : this.#written(ledgerId, commandKey);
  }

  async #written(ledgerId: string, key: CommandKey): Promise<CommandOutcome | null> {
    const found = (await this.#store.findCommands(ledgerId, [key])).get(key.id);
    if (found === undefined || found.fingerprint !== key.fingerprint) return null;
    const [entry] = await this.#store.read(ledgerId, found.seq, 1);
    if (entry?.seq !== found.seq) return null;
    try {
      return { event: parseRow(entry.row), replayed: true };
    } catch (error) {
      throw error instanceof LedgerError ? error : damagedReplay(ledgerId, found.seq, error);
    }
  }
}

function ofCall(call: AppendCall, made: UnkeyedCommand): Command {
  const { actorId, actorType } = callerOf(call);
  const { requestId, deadline } = call;
  return { ...made, actorId, actorType, commandKeys: commandKeysOf(call, made), requestId, deadline } as Command;
}
