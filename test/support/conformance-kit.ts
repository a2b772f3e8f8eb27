import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, type TestContext } from 'vitest';

export const conformanceFolder = fileURLToPath(new URL('../../conformance', import.meta.url));

/** Exit code of live.sh where Go or Python 3.12 is missing. */
const missingToolchain = 3;

/**
 * Runs live.sh of a folder against a service, and expects that all passes. Where its toolchain is missing the test is
 * skipped with what live.sh says, or fails with it if REQUIRE_BACKENDS=1.
 */
export async function expectConformance(
  context: TestContext,
  { url, folder = conformanceFolder, env = process.env }: { url: string; folder?: string; env?: NodeJS.ProcessEnv },
): Promise<void> {
  const kit = spawn(`${folder}/live.sh`, [url], { cwd: folder, env });
  let said = '';
  for (const output of [kit.stdout, kit.stderr])
    output.on('data', (data: Buffer) => {
      said += data.toString();
    });
  const [code] = await once(kit, 'close');
  if (code === missingToolchain && process.env.REQUIRE_BACKENDS !== '1') context.skip(said);
  expect([code, said]).toEqual([0, expect.stringMatching(/^[1-9]\d* passed, 0 failed$/m)]);
  process.stdout.write(`conformance: ${said.trim().split('\n').at(-1)}\n`);
}
