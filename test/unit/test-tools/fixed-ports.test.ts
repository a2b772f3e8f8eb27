import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';

const fixedPorts = new URL('../../cluster/rig/fixed-ports.ts', import.meta.url);

/** Ports that a process of another run of the tests has been given. It goes on until the test ends. */
async function portsOfOtherRun(count: number): Promise<number[]> {
  const program = `
    import { fixedPorts } from '${fixedPorts}';
    const [some, others] = await Promise.all([fixedPorts(1), fixedPorts(${count - 1})]);
    console.log(JSON.stringify([...some, ...others]));
    process.stdin.resume();
  `;
  const run = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void run.kill());
  for await (const line of run.stdout) return JSON.parse(String(line)) as number[];
  throw new Error('the run ended without its ports');
}

test('two runs of the tests at the same time are given different ports, on which nothing listens', async () => {
  const runs = await Promise.all([portsOfOtherRun(200), portsOfOtherRun(200)]);
  const all = runs.flat();
  expect(new Set(all).size).toBe(400);
  for (const port of all) {
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening');
    server.close();
  }
});

test('a run that needs many ports gets them', async () => {
  expect(new Set(await portsOfOtherRun(700)).size).toBe(700);
});
