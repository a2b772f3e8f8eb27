import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');

/** Packs ledger-trust-client and installs it in an empty folder, as its users do. */
export async function installClient(dir: string): Promise<void> {
  // The node of this test comes first: npm takes the one of the path.
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
  await run(process.execPath, [join(root, 'client', 'pack.ts'), dir], { cwd: root, env });
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ name: 'user', private: true }));
  const tarball = readdirSync(dir).find((name) => name.endsWith('.tgz'));
  if (tarball === undefined) throw new Error('npm pack left no tarball');
  const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
  await run('npm', ['install', ...quiet, `./${tarball}`], { cwd: dir, env });
}

/** An example of the package's README, sent to `base` in place of localhost:8080. */
export function exampleOf(name: string, base: string): string {
  const readme = readFileSync(join(root, 'client', 'README.md'), 'utf8');
  const [, code] = new RegExp(`<!-- example: ${name} -->\\n\`\`\`js\\n(.*?)\`\`\``, 's').exec(readme) ?? [];
  if (code === undefined) throw new Error(`The README of the client has no example ${name}`);
  return code.replaceAll('http://localhost:8080', base);
}

/**
 * A program whose types are checked: what a user of the package called `name` writes. `declaration` is that of the
 * client.
 */
export const typedProgram = (
  name: string,
  declaration: 'const' | 'await using',
) => `import { createClient, type Event, keysFromResolver, LedgerTrustError, verifyEvents } from '${name}';

export async function read(ledgerId: string): Promise<readonly Event[]> {
  ${declaration} client = createClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'k' });
  const events: Event[] = [];
  for await (const event of client.ledgerEvents(ledgerId)) events.push(event);
  const { verdict } = await verifyEvents(events, { keys: keysFromResolver(client), kind: 'ledger' });
  if (verdict === 'invalid') throw new LedgerTrustError('integrity_failed', 'not what was written');
  // @ts-expect-error a misspelt field is found by the compiler
  await client.getLedger({ ledgrId: ledgerId });
  // @ts-expect-error a number is no text
  const seq: string | undefined = events[0]?.seq;
  return seq === undefined ? [] : events;
}
`;
