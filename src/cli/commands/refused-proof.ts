import type { ProofRefused } from '../../domain/log/proof-refused.ts';
import { CliError } from '../terminal/terminal.ts';

/** The error of a command whose checkpoint or proof was refused: exit code 1. `place`: where that stands. */
export function refusedError({ message, reason }: ProofRefused, place?: string): CliError {
  return new CliError(`${place === undefined ? '' : `${place}: `}${message} (${reason})`);
}
