import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { nodeForTests } from '../../../support/node-for-tests.ts';
import { runHere } from '../../../support/program-here.ts';
import { suiteDir } from '../../../support/running-node.ts';

const dir = suiteDir();
const config = join(dir, 'config');

const lt = (args: readonly string[], env: Readonly<Record<string, string>> = {}, input = '') =>
  runHere(args, { env: { XDG_CONFIG_HOME: config, LEDGER_TRUST_URL: node.base, ...env }, input });

/** What a command prints that must succeed. */
async function done(...args: string[]): Promise<string> {
  const { code, out, err } = await lt(args);
  expect({ args, code, err }).toEqual({ args, code: 0, err: '' });
  return out.trim();
}
const as = (profile: string) => (args: string) => done(...args.split(' '), '--profile', profile);
const bySupplier = as('supplier');
const byBuyer = as('buyer');
const profileOf = (name: string): Record<string, string> =>
  JSON.parse(readFileSync(join(config, 'ledger-trust', `${name}.json`), 'utf8'));

const node = await nodeForTests();
const register = (name: string) =>
  done('register', '--profile', name, '--name', name, '--email', `${name}@example.com`, '-q');
const supplier = await register('supplier');
const buyer = await register('buyer');

const openLedger = () => bySupplier('ledgers open --buyer @buyer -q');
const createMaster = (ledger: string) => bySupplier(`masters create ${ledger} --ref PO-1 -q`);
const anEvent = ['--type', 'SHIPMENT_DISPATCHED', '--payload', '{"pallets":4}'];

describe('register, login and whoami', () => {
  it('register keeps the API key and a signing key in files that their owner alone may read', () => {
    for (const name of ['supplier.json', 'supplier.pem', 'supplier-production.json'])
      expect({ name, mode: statSync(join(config, 'ledger-trust', name)).mode & 0o777 }).toEqual({ name, mode: 0o600 });
    expect(statSync(join(config, 'ledger-trust')).mode & 0o777).toBe(0o700);
    expect(profileOf('supplier')).toEqual({
      url: node.base,
      api_key: expect.stringMatching(/^svc_sk_test_/),
      actor_id: supplier,
      key_file: join(config, 'ledger-trust', 'supplier.pem'),
      key_id: `svc:actor:${supplier}#key-1`,
    });
    expect(profileOf('supplier-production').api_key).toMatch(/^svc_sk_live_eu_/);
  });

  it('register does nothing if the profile is there, and shows no secret', async () => {
    const before = profileOf('supplier');
    const args = ['register', '--profile', 'supplier', '--name', 'x', '--email', 'x@example.com'];
    const { code, out, err } = await lt([...args, '--json']);
    expect({ code, err }).toEqual({
      code: 0,
      err: 'Profile supplier is there already, so nothing was registered.\n',
    });
    expect(JSON.parse(out)).toMatchObject({ profile: 'supplier', actor_id: supplier, production_profile: null });
    expect(out).not.toContain('svc_sk_');
    expect(profileOf('supplier')).toEqual(before);
    expect(await lt([...args, '--url', 'http://127.0.0.1:1'])).toMatchObject({
      code: 64,
      err: expect.stringContaining(`Profile supplier is of ${node.base}`),
    });
  });

  it('register --replace registers another actor, with the same key file', async () => {
    const args = ['register', '--profile', 'again', '--name', 'x', '--email', 'x@example.com', '-q'];
    const first = await done(...args);
    const pem = readFileSync(profileOf('again').key_file ?? '', 'utf8');
    const second = await done(...args, '--replace');
    expect(second).not.toBe(first);
    expect(profileOf('again').actor_id).toBe(second);
    expect(readFileSync(profileOf('again').key_file ?? '', 'utf8')).toBe(pem);
  });

  it('login keeps an API key from stdin after the service has taken it', async () => {
    const apiKey = profileOf('supplier').api_key ?? '';
    const login = ['login', '--profile', 'copy', '--api-key-file', '-', '--json'];
    const { code, out } = await lt([...login, '--key', profileOf('supplier').key_file ?? ''], {}, `${apiKey}\n`);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ actor_id: supplier, signing_key_id: `svc:actor:${supplier}#key-1` });
    expect(profileOf('copy')).toEqual(profileOf('supplier'));
    expect(statSync(join(config, 'ledger-trust', 'copy.json')).mode & 0o777).toBe(0o600);
    const other = await lt(login, {}, profileOf('buyer').api_key);
    expect(other).toMatchObject({ code: 1, err: expect.stringContaining(`Profile copy is of actor ${supplier}`) });
    const refused = await lt(['login', '--profile', 'none', '--api-key-file', '-'], {}, 'svc_sk_test_nonsense');
    expect(refused).toMatchObject({ code: 1, err: expect.stringMatching(/\(invalid_api_key, request .+\)\n$/) });
    expect(existsSync(join(config, 'ledger-trust', 'none.json'))).toBe(false);
  });

  it('login refuses a signing key that is not enrolled', async () => {
    const pem = join(dir, 'strange.pem');
    await done('keygen', '--out', pem);
    const { code, err } = await lt(
      ['login', '--profile', 'none', '--api-key-file', '-', '--key', pem],
      {},
      profileOf('supplier').api_key,
    );
    expect({ code, err }).toMatchObject({ code: 1, err: expect.stringContaining('is not enrolled for actor') });
  });

  it('whoami shows the actor of the profile', async () => {
    expect(await bySupplier('whoami')).toMatch(new RegExp(`^actor +${supplier}\\n[\\s\\S]*^profile +supplier$`, 'm'));
    expect(JSON.parse(await bySupplier('whoami --json'))).toMatchObject({ actor_id: supplier, keys: [{}] });
    expect(await bySupplier('whoami -q')).toBe(supplier);
  });
});

describe('settings', () => {
  const whoami = async (args: readonly string[], env: Readonly<Record<string, string>>) =>
    lt(['whoami', '-q', ...args], env);

  it('come from the option, else the variable, else the profile', async () => {
    expect((await whoami(['--profile', 'buyer'], { LEDGER_TRUST_PROFILE: 'supplier' })).out).toBe(`${buyer}\n`);
    expect((await whoami([], { LEDGER_TRUST_PROFILE: 'supplier' })).out).toBe(`${supplier}\n`);
    const key = { LEDGER_TRUST_API_KEY: profileOf('buyer').api_key ?? '' };
    expect((await whoami(['--profile', 'supplier'], key)).out).toBe(`${buyer}\n`);
    expect((await whoami([], key)).out).toBe(`${buyer}\n`);
    const nowhere = { LEDGER_TRUST_URL: 'http://127.0.0.1:1' };
    expect((await whoami(['--profile', 'supplier'], nowhere)).err).toContain('cannot be reached');
    expect((await whoami(['--profile', 'supplier', '--url', node.base], nowhere)).out).toBe(`${supplier}\n`);
    expect((await whoami(['--profile', 'supplier'], { LEDGER_TRUST_URL: '' })).out).toBe(`${supplier}\n`);
  });

  it('an API key of the environment is not joined with the signing key of the profile', async () => {
    const env = { LEDGER_TRUST_API_KEY: profileOf('buyer').api_key ?? '' };
    const master = await createMaster(await openLedger());
    const append = ['append', master, ...anEvent, '--profile', 'supplier'];
    expect(await lt(append, env)).toMatchObject({ code: 1, err: expect.stringContaining('(signature_required,') });
    const signed = { ...env, LEDGER_TRUST_KEY_FILE: profileOf('buyer').key_file ?? '' };
    expect((await lt(append, signed)).code).toBe(0);
  });

  it.each([
    [['whoami'], 1, 'An API key is needed: run ledger-trust register or login, or set LEDGER_TRUST_API_KEY.'],
    [
      ['whoami', '--profile', 'nobody'],
      66,
      'There is no profile nobody: make it with ledger-trust register or ledger-trust login, and --profile nobody.',
    ],
    [
      ['whoami', '--profile', '../x'],
      64,
      'A profile is named by 1 to 64 letters, digits, dots, hyphens and underscores: "../x" is no such name.',
    ],
    [
      ['whoami', '--profile', 'supplier', '--url', 'x'],
      64,
      'Option --url must be a base URL such as https://ledger.example.',
    ],
  ])('%j ends with a sentence', async (args, code, sentence) => {
    expect(await lt(args)).toEqual({ code, out: '', err: `ledger-trust: ${sentence}\n` });
  });
});

describe('ledgers, masters and events', () => {
  it('ledgers are opened, listed, shown and closed', async () => {
    const ledger = JSON.parse(await bySupplier('ledgers open --buyer @buyer --json'));
    expect(ledger).toMatchObject({ buyer_actor_id: buyer, supplier_actor_id: supplier, status: 'OPEN' });
    const table = await byBuyer('ledgers list --order desc --type ORDER --limit 1');
    const lines = table.split('\n');
    expect(lines.pop()).toMatch(/^More may follow: --cursor \S+$/);
    expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
      ['LEDGER', 'TYPE', 'STATUS', 'CREATED', 'BUYER OR PRIMARY', 'SUPPLIER OR OTHER', 'PURPOSE'],
      [ledger.id, 'ORDER', 'OPEN', ledger.created_at, buyer, supplier, '-'],
    ]);
    expect(await byBuyer('ledgers list --party @supplier --order desc --limit 1 -q')).toBe(ledger.id);
    expect(await byBuyer('ledgers list --order desc --limit 1 -q')).toBe(ledger.id);
    expect(JSON.parse(await byBuyer('ledgers list --limit 1 --json'))).toMatchObject({ actor_id: buyer, count: 1 });
    expect(await byBuyer(`ledgers show ${ledger.id}`)).toMatch(new RegExp(`^buyer +${buyer}$`, 'm'));
    const shown = JSON.parse(await byBuyer(`ledgers show ${ledger.id} --json`));
    expect(shown).toMatchObject({ id: ledger.id, buyer_organization_id: null });
    // REST leaves this field out of order ledgers.
    expect(shown).not.toHaveProperty('purpose');
    expect(await bySupplier(`ledgers close ${ledger.id}`)).toMatch(/^status +CLOSED$/m);
  });

  it('an engagement is opened with a counterparty', async () => {
    const args = ['ledgers', 'open', '--counterparty', `svc:actor:${buyer}`, '--purpose', 'Inspection', '--json'];
    const engagement = JSON.parse(await done(...args, '--profile', 'supplier'));
    expect(engagement).toMatchObject({ ledger_type: 'ENGAGEMENT', counterparty_actor_id: buyer });
  });

  it('a master is made, listed, shown and closed, and events are appended to it, signed', async () => {
    const ledger = await openLedger();
    const master = await createMaster(ledger);
    expect(await bySupplier(`masters list ${ledger} -q`)).toBe(master);
    expect(await bySupplier(`masters list ${ledger} --ref PO-1`)).toMatch(
      new RegExp(`^${master}  OPEN    \\S+  ORDER  PO-1$`, 'm'),
    );
    expect(await bySupplier(`masters list ${ledger} --ref PO-2 -q`)).toBe('');
    expect(await bySupplier(`masters show ${master}`)).toMatch(/^ref +PO-1$/m);
    const event = JSON.parse(await done('append', master, ...anEvent, '--profile', 'supplier', '--json'));
    expect(event).toMatchObject({ status: 'recorded', seq: 3, event_type: 'SHIPMENT_DISPATCHED' });
    const file = join(dir, 'payload.json');
    writeFileSync(file, '{"a":1}');
    const fromStdin = await lt(
      ['append', master, '--type', 'A', '--payload', '-', '--profile', 'supplier'],
      {},
      '{"a":1}',
    );
    expect(fromStdin).toMatchObject({ code: 0, out: expect.stringMatching(/^seq +4$/m) });
    expect(await bySupplier(`append ${master} --type B --payload ${file}`)).toMatch(/^seq +5$/m);

    const { events, integrity } = JSON.parse(await byBuyer(`events ${ledger} --verify-signatures --json`));
    expect(integrity).toEqual({ verified: true, issues: [] });
    expect(events[3]).toMatchObject({
      id: event.event_id,
      signing_key_id: `svc:actor:${supplier}#key-1`,
      payload: { pallets: 4, business_ref: 'PO-1' },
    });
    const table = (await byBuyer(`events ${ledger}`)).split('\n');
    expect(table).toHaveLength(8);
    expect(table[4]?.split(/ {2,}/)).toEqual([
      '3',
      event.created_at,
      event.event_id,
      supplier,
      'signed',
      'SHIPMENT_DISPATCHED',
    ]);
    expect(await byBuyer(`events --master ${master} --type A -q`)).toMatch(/^\S+$/);
    expect(await byBuyer(`events ${ledger} --limit 1`)).toMatch(/More may follow: --cursor \S+$/);
    expect(await bySupplier(`masters close ${master}`)).toMatch(/^status +CLOSED$/m);
  });

  it('what is exported with a profile is valid under the keys of the running node', async () => {
    const ledger = await openLedger();
    const master = await createMaster(ledger);
    await done('append', master, ...anEvent, '--profile', 'supplier');
    const file = join(dir, 'export.json');
    expect(await lt(['export', ledger, '--profile', 'buyer', '--out', file])).toMatchObject({ code: 0 });
    const { code, out } = await lt(['verify', file, '--resolver', node.base]);
    expect(code).toBe(0);
    expect(out).toMatch(/^VALID {2}.*4 events, 2 signatures, 2 seals, chain whole\n[\s\S]*development mode/);
    const json = JSON.parse((await lt(['verify', file, '--resolver', node.base, '--json'])).out);
    expect(json).toMatchObject({ verdict: 'valid', authority_phase: '1' });
    expect((await lt(['verify', file])).code).toBe(2);
  });
});

describe('grants', () => {
  it('let another actor read until they are revoked, and snapshots show them', async () => {
    const ledger = await openLedger();
    await done('register', '--profile', 'auditor', '--name', 'a', '--email', 'a@example.com', '-q', '--replace');
    const auditor = profileOf('auditor').actor_id ?? '';
    const link = await bySupplier(`grant --ledger ${ledger} --to @auditor --role AUDITOR --access read -q`);
    expect(await as('auditor')(`events ${ledger} -q`)).toMatch(/^(\S+\n){2}\S+$/);
    expect(JSON.parse(await bySupplier(`snapshot --ledger ${ledger} --json`))).toMatchObject({
      count: 1,
      delegations: [{ link_id: link, delegate_actor_id: auditor, permissions: { access: 'read' }, revoked_at: null }],
    });
    expect(await bySupplier(`revoke --ledger ${ledger} --from ${auditor} -q`)).toBe(link);
    expect(await bySupplier(`snapshot --ledger ${ledger} -q`)).toBe('');
    const master = await createMaster(ledger);
    expect(await bySupplier(`grant --master ${master} --to @auditor --role OPS --access write`)).toMatch(
      /^role +OPS$/m,
    );
    expect(await bySupplier(`revoke --master ${master} --from @auditor`)).toMatch(/^revoked +\S+$/m);
  });

  it('are of exactly one ledger, master or organization', async () => {
    const both = ['snapshot', '--ledger', supplier, '--master', supplier, '--profile', 'supplier'];
    for (const args of [both, ['snapshot', '--profile', 'supplier']])
      expect(await lt(args)).toMatchObject({
        code: 64,
        err: 'ledger-trust: Give one of --ledger, --master and --organization.\n',
      });
  });
});

describe('keys', () => {
  it('a second signing key is enrolled and preferred, the profile signs with it, and the first is revoked', async () => {
    const by = as('keys');
    await done('register', '--profile', 'keys', '--name', 'k', '--email', 'k@example.com', '-q');
    const [first] = [profileOf('keys').key_id];
    const pem = join(dir, 'second.pem');
    const publicKey = await done('keygen', '--out', pem);
    const second = await by(`keys enroll ${pem} -q`);
    expect(profileOf('keys')).toMatchObject({ key_id: second, key_file: pem });
    expect(await by(`keys prefer ${second} -q`)).toBe(second);
    expect(await by(`keys revoke ${first} --reason lost`)).toMatch(/^status +REVOKED$/m);
    expect(await by('keys list -q')).toBe(second);
    expect(JSON.parse(await bySupplier('keys list @keys --all --json'))).toMatchObject([
      { kid: first, status: 'REVOKED', revoked_reason: 'lost' },
      { kid: second, preferred_signing: true, public_key: publicKey },
    ]);
    const ledger = await by('ledgers open --buyer @buyer -q');
    await by(`masters create ${ledger} --ref X -q`);
    expect(await byBuyer(`events ${ledger} --json`)).toContain(`"signing_key_id": "${second}"`);
  });

  it('an API key is made, works, is listed without its secret, and is revoked', async () => {
    const { key_id: id, api_key: apiKey } = JSON.parse(await bySupplier('keys api create --name ci --json'));
    expect((await lt(['whoami', '-q'], { LEDGER_TRUST_API_KEY: apiKey })).out).toBe(`${supplier}\n`);
    const list = await bySupplier('keys api list');
    expect(list).toMatch(new RegExp(`^${id} .* ci$`, 'm'));
    expect(list).not.toContain(apiKey);
    expect(await bySupplier(`keys api revoke ${id} -q`)).toBe(id);
    expect((await lt(['whoami', '-q'], { LEDGER_TRUST_API_KEY: apiKey })).code).toBe(1);
  });
});

describe('webhooks', () => {
  it('are made with their secret in a file, listed, tested and deleted', async () => {
    const secret = join(dir, 'webhook.secret');
    const url = 'http://127.0.0.1:9/hook';
    const id = await bySupplier(`webhooks create ${url} --type A --type B --secret-out ${secret} -q`);
    expect(readFileSync(secret, 'utf8')).toMatch(/^whsec_\S+\n$/);
    expect(statSync(secret).mode & 0o777).toBe(0o600);
    expect(await bySupplier('webhooks list')).toMatch(new RegExp(`^${id}  active  all  +A,B  +${url}$`, 'm'));
    const delivery = await bySupplier(`webhooks test ${id} -q`);
    expect(JSON.parse(await bySupplier(`webhooks test ${id} --json`))).toMatchObject({ event_type: 'PING' });
    expect(await bySupplier(`webhooks deliveries ${id} -q`)).toContain(delivery);
    expect(await bySupplier(`webhooks redeliver ${id} ${delivery} -q`)).toMatch(/^\S+$/);
    expect(await bySupplier(`webhooks delete ${id} --json`)).toBe('{}');
    expect(await bySupplier('webhooks list')).toMatch(new RegExp(`^${id}  ended `, 'm'));
  });
});

describe('errors', () => {
  it('are the sentence of the service with its code and request, and end with 1', async () => {
    const { code, out, err } = await lt(['ledgers', 'show', supplier, '--profile', 'supplier']);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/^ledger-trust: .+\. \(not_found, request \S+\)\n$/);
    const badly = await lt(['append', supplier, '--type', 'A', '--payload', '{"a":}', '--profile', 'supplier']);
    expect(badly).toMatchObject({ code: 64, err: expect.stringContaining('Option --payload holds no JSON object:') });
  });

  it('a command that is run again with its idempotency key counts once', async () => {
    const open = 'ledgers open --buyer @buyer -q --idempotency-key order-7';
    expect(await bySupplier(open)).toBe(await bySupplier(open));
    const master = await createMaster(await openLedger());
    const append = ['append', master, ...anEvent, '--profile', 'supplier', '-q', '--idempotency-key', 'e-1'];
    expect(await done(...append)).toBe(await done(...append));
  });
});
