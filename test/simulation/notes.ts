import { LedgerError } from '../../src/domain/errors.ts';
import type { Log, SignedSize } from '../../src/service/proofs/proven-logs.ts';
import { unboundedWalk } from '../../src/service/walking/walk.ts';
import type { Violation } from '../support/history/history-check.ts';
import { type Note, nameOfNote } from '../support/history/notes-check.ts';
import type { SimulatedNode, World } from './node.ts';

type NoteResult = 'given' | 'empty' | 'refused' | 'disconnected';

/** Every checkpoint that was ever given, in order. */
export class NoteBook {
  readonly notes: Note[] = [];
  /** What a node answered that is no answer, in words. */
  readonly broken: Violation[] = [];

  /** Asks a node for a checkpoint of a log, at the newest size or at an older one. */
  ask(world: World, node: SimulatedNode, log: Log, isNewest: boolean): Promise<NoteResult> {
    const { life, checkpoints } = node;
    const isCopy = world.logs.isCopy;
    return new Promise((resolve) => {
      life.onEnd(() => resolve('disconnected'));
      const give = async (): Promise<NoteResult> => {
        const walk = unboundedWalk();
        const newest = await checkpoints.newestSize(log, walk);
        if (newest === 0) return 'empty';
        const signed = await checkpoints.checkpoint(log, isNewest ? newest : world.random.between(1, newest), walk);
        if (signed === null) return 'refused';
        if (isCopy) this.broken.push(`copy: ${node.id} signed ${signed.origin} at size ${signed.size}`);
        this.#keep(log, node.id, signed);
        return 'given';
      };
      const answered = (result: NoteResult) => {
        if (result === 'given') world.counts.notes++;
        if (result === 'refused') world.counts.notesRefused++;
        resolve(result);
      };
      life.deliver(() =>
        give().then(
          (result) => life.deliver(() => answered(result)),
          (error: unknown) => {
            if (!(error instanceof LedgerError) || error.code === 'internal')
              this.broken.push(`broken: ${node.id} answered a checkpoint request with ${error}`);
            life.deliver(() => answered('refused'));
          },
        ),
      );
    });
  }

  /** Also of a node that pauses before it answers: its checkpoint may leave it later. */
  #keep(log: Log, node: string, { origin, size, root, checkpoint }: SignedSize): void {
    const note = { log, node, origin, size, root: Buffer.from(root) };
    if (!checkpoint.startsWith(`${origin}\n${size}\n${note.root.toString('base64')}\n`))
      this.broken.push(`broken: ${node} signed another text than ${nameOfNote(note)}`);
    this.notes.push(note);
  }
}
