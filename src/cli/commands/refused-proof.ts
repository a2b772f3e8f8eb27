import type { ProofRefused } from '../../domain/log/proof-refused.ts';
import { CliError } from '../terminal/terminal.ts';

/** The error of a command whose checkpoint or proof was refused: exit code 1. */
export function refusedError({ message, reason }: ProofRefused): CliError {
  return new CliError(`${message} (${reason})`);
}
