import { ConfigError } from '../../src/runtime/start-error.ts';
import type { MemberBoard } from '../placement/members.ts';

/** Throws ConfigError while a node is announced. `why`: what the node would do, as the end of the sentence. */
export async function refuseRunningNodes(board: MemberBoard, why: string): Promise<void> {
  const members = await board.list();
  if (members.length === 0) return;
  throw new ConfigError(`Stop all nodes first (${members.map(({ id }) => id).join(', ')}): ${why}.`);
}
