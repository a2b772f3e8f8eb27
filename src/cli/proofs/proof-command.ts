import type { Command } from 'commander';
import { verifyForeignProof } from '../../domain/log/foreign-proof.ts';
import { parseVkey } from '../../domain/log/log-key.ts';
import { ProofRefused } from '../../domain/log/proof-refused.ts';
import { readText } from '../commands/file-content.ts';
import { refusedError } from '../commands/refused-proof.ts';
import { exitCodes } from '../terminal/exit-codes.ts';
import { shownText } from '../terminal/shown-text.ts';
import { inputError, nameOf, type Terminal, usageError } from '../terminal/terminal.ts';

interface ProofCommandOptions {
  readonly record: string;
  readonly vkey: string;
  readonly index?: string;
  readonly json?: boolean;
}

/** `ledger-trust proof`: verifies a proof file of any log. It needs no network. */
export function addProof(program: Command, terminal: Terminal): void {
  program
    .command('proof')
    .description('Verify a proof file (c2sp.org/tlog-proof) of any log; the exit code is the result.')
    .argument('<file>', 'proof file, or - for stdin')
    .requiredOption(
      '--record <hex>',
      'what the log holds: of a ledger the hash of the event, of a master its content_hash',
    )
    .requiredOption('--vkey <vkey>', 'name and key of the log, from elsewhere than the proof: name+id+key')
    .option('--index <n>', 'index that is expected; if left out, the one of the proof is shown and not checked')
    .option('--json', 'show the result as JSON')
    .addHelpText(
      'after',
      `
Exit codes:
  0   the record is in the log
  ${exitCodes.failed}   refused: the proof does not show it
  ${exitCodes.usage}  no result: the command line is wrong
  ${exitCodes.input}  no result: the file is not there, or is no proof file`,
    )
    .action(async (file: string, options: ProofCommandOptions) => {
      const record = recordOf(options.record);
      const vkey = parseVkey(options.vkey);
      if (vkey === null) throw usageError('Option --vkey must be name+id+key, with an Ed25519 key of prime order.');
      const expected = { record, index: indexOf(options.index), ...vkey };
      const text = await readText(terminal, file);
      try {
        const { origin, index, size } = verifyForeignProof(text, expected);
        const shown = options.json
          ? JSON.stringify({ verified: true, origin, index, size })
          : shownText(`included: index ${index} of ${size} in ${origin}`);
        await terminal.print(`${shown}\n`);
      } catch (error) {
        if (!(error instanceof ProofRefused)) throw error;
        throw error.reason === 'malformed' ? inputError(`${nameOf(file)}: ${error.message}`) : refusedError(error);
      }
    });
}

function recordOf(hex: string): Uint8Array {
  if (!/^(?:[0-9a-f]{2})*$/i.test(hex)) throw usageError('Option --record takes hex digits, two for each byte.');
  return Buffer.from(hex, 'hex');
}

function indexOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  const index = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(index))
    throw usageError('Option --index takes a whole number below 2^53.');
  return index;
}
