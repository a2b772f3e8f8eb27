import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ledgerId } from '../../../support/export-of-vectors.ts';
import { forgeries } from '../../../support/forged-answers.ts';
import { runHere } from '../../../support/program-here.ts';
import {
  type Lies,
  ledgerOrigin,
  logKey,
  masterId,
  masterOrigin,
  otherKey,
  provingService,
} from '../../../support/proving-service.ts';
import { newShell } from '../../../support/shell.ts';

const { dir } = newShell();
const base64 = ({ publicKey }: { readonly publicKey: Buffer }) => publicKey.toString('base64');

/** A service and a state that commands of one user share. */
async function user(state = join(dir, `state-${Math.random()}.json`)) {
  const { baseUrl, lies } = await provingService();
  const run = (...args: string[]) =>
    runHere(['checkpoint', ...args, '--url', baseUrl, '--state', state], {
      env: { LEDGER_TRUST_API_KEY: 'svc_sk_test_x' },
    });
  const look = (lie: Partial<Lies> = {}, ...args: string[]) => {
    Object.assign(lies, lie);
    return run(ledgerId, ...args);
  };
  return { lies, state, run, look };
}

test('the first use shows the checkpoint, and what it accepts from now on', async () => {
  const { look, state } = await user();
  const first = await look({ newest: 7 });
  expect(first).toMatchObject({ code: 0 });
  expect(first.out).toMatch(new RegExp(`^log +${ledgerOrigin}\nsize +7\nroot +\\S{44}\nbefore +none was kept\n$`));
  expect(first.err).toMatch(
    /^First use\..*\n {2}name +ledger\.example\/v1\n {2}log key +[0-9a-f]{64}\n {2}authority key +/,
  );
  expect(statSync(state).mode & 0o777).toBe(0o600);
  const second = await look({ newest: 9 });
  expect(second).toMatchObject({ code: 0, err: '' });
  expect(second.out).toMatch(/size +9\n[\s\S]*before +7, which it continues\n$/);
});

test('--json has the note, --quiet the origin alone, and --master names a master', async () => {
  const { run } = await user();
  const { out } = await run('--master', masterId, '--json');
  expect(JSON.parse(out)).toMatchObject({
    origin: masterOrigin,
    size: 4,
    root_hash: expect.stringMatching(/^.{43}=$/),
  });
  expect(JSON.parse(out).checkpoint).toContain(`${masterOrigin}\n4\n`);
  expect((await run(ledgerId, '--quiet')).out).toBe(`${ledgerOrigin}\n`);
});

test.each(forgeries.filter(([, call]) => call === 'ledger' || call === 'master'))(
  '%s is refused, and nothing is kept',
  async (_what, call, lie, reason) => {
    const { run, lies, state } = await user();
    Object.assign(lies, lie);
    const refused = await run(...(call === 'master' ? ['--master', masterId] : [ledgerId]));
    expect(refused).toMatchObject({ out: '', err: expect.stringContaining(`(${reason})`) });
    expect([refused.code, existsSync(state)]).toEqual([1, false]);
  },
);

test('a contradiction ends with 1, and both notes are beside the state', async () => {
  const { look, state } = await user();
  await look({ newest: 6 });
  const kept = JSON.parse(readFileSync(state, 'utf8')).checkpoints[ledgerOrigin];
  const refused = await look({ newest: 9, rewrittenAt: 2 });
  expect(refused).toMatchObject({ code: 1, out: '' });
  expect(refused.err).toContain('(checkpoints_contradict)');
  expect(refused.err).toContain(`${state}.contradiction`);
  const evidence = readFileSync(`${state}.contradiction`, 'utf8');
  expect(evidence.startsWith(`${kept}\n${ledgerOrigin}\n9\n`)).toBe(true);
  expect(statSync(`${state}.contradiction`).mode & 0o777).toBe(0o600);
  expect(JSON.parse(readFileSync(state, 'utf8')).checkpoints[ledgerOrigin]).toBe(kept);
});

test('a service that answers no proof of consistency ends with 1, and both notes are beside the state', async () => {
  const { look, state } = await user();
  await look({ newest: 6 });
  const kept = JSON.parse(readFileSync(state, 'utf8')).checkpoints[ledgerOrigin];
  const refused = await look({ newest: 9, rewrittenAt: 2, showsConsistency: false });
  expect(refused).toMatchObject({ code: 1, out: '', err: expect.stringContaining('(not_found, request r-1)') });
  expect(refused.err).toContain(`${state}.unproven`);
  expect(readFileSync(`${state}.unproven`, 'utf8').startsWith(`${kept}\n${ledgerOrigin}\n9\n`)).toBe(true);
  expect(statSync(`${state}.unproven`).mode & 0o777).toBe(0o600);
  expect(existsSync(`${state}.contradiction`)).toBe(false);
  expect(JSON.parse(readFileSync(state, 'utf8')).checkpoints[ledgerOrigin]).toBe(kept);
});

test('an error before a checkpoint was verified leaves nothing beside the state', async () => {
  const { look, run, state } = await user();
  await look();
  expect(await run('--master', '0193a000-0000-7000-8000-0000000000ff')).toMatchObject({ code: 1 });
  expect(existsSync(`${state}.unproven`)).toBe(false);
});

test('a smaller checkpoint ends with 1', async () => {
  const { look, state } = await user();
  await look();
  expect(await look({ newest: 8 })).toMatchObject({ code: 1, err: expect.stringContaining('(checkpoint_behind)') });
  expect(existsSync(`${state}.contradiction`)).toBe(false);
});

test('an unknown key ends with 1, until the user gives it', async () => {
  const { look } = await user();
  await look({ hasAuthority: false });
  const rotated = { keys: [logKey, otherKey] };
  expect(await look(rotated)).toMatchObject({
    code: 1,
    err: expect.stringMatching(/ask its operator for the key, .*\(unknown_log_key\)/),
  });
  const accepted = await look(rotated, '--log-key', base64(otherKey));
  expect(accepted).toMatchObject({
    code: 0,
    err: expect.stringMatching(/^Newly accepted\..*\n {2}log key +\w{64}\n$/),
  });
  expect(await look(rotated)).toMatchObject({ code: 0, err: '' });
});

test('a key that the user gives first is the only one that is accepted at the first use', async () => {
  const { look, state } = await user();
  expect(await look({}, '--log-key', base64(otherKey))).toMatchObject({ code: 1 });
  expect(existsSync(state)).toBe(false);
  expect(await look({}, '--log-key', base64(otherKey), '--log-key', base64(logKey))).toMatchObject({ code: 0 });
});

test('another name ends with 1, until the user accepts it', async () => {
  const { look } = await user();
  await look();
  const renamed = { serviceName: 'ledger.example/v1-2027', newest: 5 };
  expect(await look(renamed)).toMatchObject({ code: 1, err: expect.stringContaining('(origin_changed)') });
  const accepted = await look(renamed, '--new-origin', 'ledger.example/v1-2027');
  expect(accepted).toMatchObject({ code: 0, err: expect.stringContaining('name           ledger.example/v1-2027') });
  expect(await look(renamed)).toMatchObject({ code: 0, err: '' });
});

test.each([
  [[]],
  [[ledgerId, '--master', masterId]],
  [[ledgerId.toUpperCase()]],
  [[ledgerId, '--log-key', 'AAAA']],
  [[ledgerId, '--new-origin', 'https://ledger.example']],
])('%j is no command line', async (args) => {
  const { run } = await user();
  expect(await run(...args)).toMatchObject({ code: 64, out: '' });
});

test('a log key that is none is refused in one sentence', async () => {
  const { run } = await user();
  expect((await run(ledgerId, '--log-key', 'AAAA')).err).toMatch(/"AAAA" is no log key: [^.]+\.\n$/);
});

test('a state that holds something else ends with 66 and stays', async () => {
  const { look, state } = await user();
  writeFileSync(state, '{}');
  expect(await look()).toMatchObject({ code: 66, err: expect.stringContaining(state) });
  expect(readFileSync(state, 'utf8')).toBe('{}');
});

test('a state that cannot be written ends with 74', async () => {
  const { look } = await user('/proc/none');
  const err = 'ledger-trust: /proc/none cannot be written: it is not there.\n';
  expect(await look()).toEqual({ code: 74, out: '', err });
});
