import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { NODE_MAJOR_MIN, refuseOldNode } from '../../../src/runtime/node-version.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../..');

describe('a Node that is too old', () => {
  const refusal = (version: string): string | null => {
    try {
      refuseOldNode(version, (message) => {
        throw new Error(message);
      });
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };

  test.each(['v20.20.2', 'v22.19.0', 'v23.11.1'])('%s is refused in one sentence', (version) => {
    expect(refusal(version)).toBe(`ledger-trust: Node 24 or later is needed, and this is Node ${version.slice(1)}.`);
  });

  test.each([process.version, 'v24.0.0', 'v26.1.0'])('%s is not refused', (version) => {
    expect(refusal(version)).toBeNull();
  });

  test('the oldest version is that of package.json', () => {
    const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { engines: { node: string } };
    expect(engines.node).toBe(`>=${NODE_MAJOR_MIN}`);
  });

  test.each([
    ['src/main.ts'],
    ['src/cli/main.ts', '--help'],
    ['cluster/main.ts'],
    ['cluster/cli.ts', '--help'],
    ['cluster/cli.ts', 'verify', 'events.jsonl'],
  ])('%s %s says it and loads nothing else', async (main, ...args) => {
    const old = "data:text/javascript,Object.defineProperty(process, 'version', { value: 'v20.20.2' })";
    const failed = await run(process.execPath, ['--import', old, join(root, main), ...args]).catch((error) => error);
    expect(failed).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'ledger-trust: Node 24 or later is needed, and this is Node 20.20.2.\n',
    });
    const text = readFileSync(join(root, main), 'utf8');
    expect([...text.matchAll(/^import .* from '(.*)';$/gm)]).toHaveLength(1);
  });
});
