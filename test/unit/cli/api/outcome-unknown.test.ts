import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { against, answer } from '../../../support/answering-service.ts';
import { runHere } from '../../../support/program-here.ts';
import { suiteDir } from '../../../support/running-node.ts';

const dir = suiteDir();
const actor = '0199aaaa-0000-7000-8000-000000000001';
mkdirSync(join(dir, 'ledger-trust'));
const run = (url: string, ...args: string[]) => runHere([...args, '--url', url], { env: { XDG_CONFIG_HOME: dir } });
const profile = (name: string, mode: number) =>
  writeFileSync(
    join(dir, 'ledger-trust', `${name}.json`),
    JSON.stringify({ url: 'http://127.0.0.1:1', api_key: 'svc_sk_test_x', actor_id: actor }),
    { mode },
  );
profile('default', 0o600);
profile('open', 0o644);

const unknown = { error: { code: 'outcome_unknown', message: 'It is not known.', request_id: 'r-9', details: {} } };

describe('a call whose outcome is unknown', () => {
  it('names the key with which the same command counts once', async () => {
    const { seen, baseUrl } = await against((_, response) => answer(response, 504, unknown));
    const { code, err } = await run(baseUrl, 'ledgers', 'open', '--buyer', actor);
    expect(code).toBe(1);
    const key = seen[0]?.headers['idempotency-key'];
    expect(key).toMatch(/^\S{36}$/);
    expect(err).toBe(
      `ledger-trust: It is not known. (outcome_unknown, request r-9) It is not known whether the service carried the call out. Run the same command again with --idempotency-key ${key}: it then counts once.\n`,
    );
    expect(new Set(seen.map(({ headers }) => headers['idempotency-key']))).toEqual(new Set([key]));
  });

  it('has the same key again if the caller gives it', async () => {
    const { seen, baseUrl } = await against((_, response) =>
      answer(response, 201, {
        id: actor,
        buyer_actor_id: actor,
        supplier_actor_id: actor,
        status: 'OPEN',
        ledger_type: 'ORDER',
        created_at: '2026-01-01T00:00:00.000Z',
      }),
    );
    const { code, out } = await run(baseUrl, 'ledgers', 'open', '--buyer', actor, '--idempotency-key', 'mine', '-q');
    expect({ code, out }).toEqual({ code: 0, out: `${actor}\n` });
    expect(seen[0]?.headers['idempotency-key']).toBe('mine');
  });

  it('is said of register, which has no key', async () => {
    const { baseUrl } = await against((_, response) => answer(response, 504, unknown));
    const args = ['register', '--profile', 'new', '--name', 'x', '--email', 'x@example.com'];
    const { code, err } = await run(baseUrl, ...args);
    expect(code).toBe(1);
    expect(err).toContain('If it did, running the command again does it a second time.');
  });

  it('is not said of reads, refusals and calls that were never sent', async () => {
    const refused = { error: { code: 'not_found', message: 'No such actor.', request_id: 'r-1', details: {} } };
    const { baseUrl } = await against((_, response) => answer(response, 404, refused));
    expect((await run(baseUrl, 'ledgers', 'open', '--buyer', actor)).err).toBe(
      'ledger-trust: No such actor. (not_found, request r-1)\n',
    );
    expect((await run('http://127.0.0.1:1', 'ledgers', 'open', '--buyer', actor)).err).toMatch(
      /cannot be reached .+ \(connection_lost\)\n$/,
    );
    const reading = await against((_, response) => answer(response, 504, unknown));
    expect((await run(reading.baseUrl, 'ledgers', 'list')).err).toBe(
      'ledger-trust: It is not known. (outcome_unknown, request r-9)\n',
    );
  });
});

describe('the file of a profile', () => {
  it('that others may read is warned about', async () => {
    const { err } = await run('http://127.0.0.1:1', 'whoami', '--profile', 'open');
    expect(err).toContain('open.json, which holds a secret: run chmod 600 on it.\n');
    expect((await run('http://127.0.0.1:1', 'whoami')).err).not.toContain('chmod');
  });

  it('that holds no profile ends with 66', async () => {
    writeFileSync(join(dir, 'ledger-trust', 'bad.json'), '{"url":1}', { mode: 0o600 });
    const { code, err } = await run('http://127.0.0.1:1', 'whoami', '--profile', 'bad');
    expect({ code, err }).toMatchObject({ code: 66, err: expect.stringContaining('bad.json holds no profile') });
  });
});
