import { spawn } from 'node:child_process';

/** Runs a script of this folder as a process, with a job and its result as JSON. */
export function runProcess<Job, Result>(script: string, job: Job): Promise<Result> {
  const child = spawn(process.execPath, [new URL(script, import.meta.url).pathname], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify(job));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(Buffer.concat(chunks).toString()) as Result);
      else reject(new Error(`${script} ended with ${code}`));
    });
  });
}

/** The process that `runProcess` runs: takes its job from standard input, and answers on standard output. */
export async function answerJob<Job, Result>(run: (job: Job) => Result | Promise<Result>): Promise<void> {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
  process.stdout.write(JSON.stringify(await run(JSON.parse(text) as Job)));
}
