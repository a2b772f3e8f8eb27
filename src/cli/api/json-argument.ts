import type { JsonObject } from '../../client/shapes.ts';
import { LedgerError } from '../../domain/errors.ts';
import { parseJson, toValue } from '../../domain/json/json.ts';
import { readJson } from '../commands/file-content.ts';
import { inputError, nameOf, type Terminal, usageError } from '../terminal/terminal.ts';

/**
 * The JSON object that an option gives: itself, as the name of a file, or `-` for stdin. Parsed strictly (RFC 7493).
 * Throws CliError: exit code 64 for JSON in the option, 66 for a file.
 */
export async function jsonArgument(terminal: Terminal, optionName: string, text: string): Promise<JsonObject> {
  const isInline = /^\s*\{/.test(text);
  const node = isInline ? inlineJson(optionName, text) : await readJson(terminal, text, 'JSON object');
  if (node.kind !== 'object') throw inputError(`${nameOf(text)} holds no JSON object.`);
  return toValue(node) as JsonObject;
}

function inlineJson(optionName: string, text: string) {
  try {
    return parseJson(text);
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    throw usageError(`Option ${optionName} holds no JSON object: ${error.message}`);
  }
}
