import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ed25519Key } from '../../src/client/signing.ts';
import { compileCache } from '../support/compile-cache.ts';
import { vectors } from '../support/vectors.ts';

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

const main = new URL('../../src/cli/main.ts', import.meta.url).pathname;
const dir = mkdtempSync(join(tmpdir(), 'ledger-trust-cli-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Runs the real command in a process of its own, with nothing in its environment that it looks at but what is given. */
function run(args: readonly string[], input = '', env: Record<string, string> = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...args], { cwd: dir, env: { ...compileCache, ...env } });
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk) => {
      out += chunk;
    });
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, out, err }));
    child.stdin.end(input);
  });
}

function file(name: string, content: unknown): string {
  const path = join(dir, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const ledgerId = '0193a000-0000-7000-8000-000000000001';
const actorId = '0193a000-0000-7000-8000-00000000000a';

/** The chain of the vectors as REST shows events. */
const events = vectors.chain.map(({ content, ...event }) => {
  const { master, actor_sig_payload_hash: _, payload_hash: __, ...fields } = content;
  return {
    ...fields,
    master_id: master?.id ?? null,
    master_seq: master?.seq ?? null,
    payload: event.payload,
    actor_sig_payload: event.actor_sig_payload,
    hash: event.hash,
    content_hash: event.content_hash,
    authority_sig: event.authority_sig ?? null,
    authority_key_id: event.authority_key_id ?? null,
  };
});
const actor = {
  id: `svc:actor:${actorId}`,
  actor_id: actorId,
  role: 'PARTICIPANT',
  status: 'ACTIVE',
  keys: [
    {
      kid: vectors.kid,
      algorithm: 'Ed25519',
      public_key: vectors.keys.supplier.public_key_base64,
      status: 'ACTIVE',
      preferred_signing: true,
      valid_from: '2026-11-21T02:06:39.000Z',
      created_at: '2026-11-21T02:06:39.000Z',
    },
  ],
  preferred_signing: vectors.kid,
  trust_graph: null,
  authority_attestations: [],
  created_at: '2026-11-21T02:06:39.000Z',
};
const authorityKey = {
  kid: 'svc:authority#key-1',
  algorithm: 'Ed25519',
  public_key: vectors.keys.authority.public_key_base64,
  fingerprint: '00',
  valid_from: '2026-11-01T00:00:00.000Z',
  valid_to: null,
};
const authority = {
  id: 'svc:authority',
  algorithm: 'Ed25519',
  public_key: authorityKey.public_key,
  fingerprint: '00',
  kid_namespace: 'svc:authority#key-<seq>',
  phase: '2',
  keys: [authorityKey],
};
const answer = { ledger_id: ledgerId, count: events.length, integrity: { verified: true, issues: [] }, events };
const keysFile = file('keys.json', actor);
const authorityFile = file('authority.json', authority);
const offline = ['--keys', keysFile, '--authority', authorityFile];

function exported(lines: readonly unknown[] = events, count = lines.length): string {
  return [
    { format: 'ledger-trust-export/1', ledger_id: ledgerId, exported_at: '2026-11-21T03:00:00.000Z' },
    ...lines.map((event) => ({ event })),
    { actor },
    { authority },
    { end: { count } },
  ]
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
}

describe('keygen', () => {
  it('writes a private key for its owner alone and shows the public one', async () => {
    const path = join(dir, 'new.pem');
    const { code, out, err } = await run(['keygen', '--out', path]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(ed25519Key(readFileSync(path, 'utf8')).asymmetricKeyType).toBe('ed25519');
    expect(out).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
    expect(await run(['keygen', '--from', path])).toEqual({ code: 0, out, err: '' });
  });

  it('never writes over a file', async () => {
    const path = file('precious.pem', 'precious');
    const { code, err } = await run(['keygen', '--out', path]);
    expect({ code, err }).toEqual({ code: 1, err: `ledger-trust: ${path} cannot be written: it exists already.\n` });
    expect(readFileSync(path, 'utf8')).toBe('precious');
  });

  it('without a file keeps the public key out of the private one’s way', async () => {
    const { code, out, err } = await run(['keygen']);
    expect(code).toBe(0);
    expect(ed25519Key(out).type).toBe('private');
    expect(err).toMatch(/^public key: [A-Za-z0-9+/]{43}=\n$/);
  });
});

describe('sign', () => {
  const pem = ed25519Key(Buffer.from(vectors.keys.supplier.seed_hex, 'hex')).export({ format: 'pem', type: 'pkcs8' });
  const key = file('supplier.pem', pem.toString());

  it('signs the vectors, from a file and from stdin', async () => {
    for (const [index, vector] of vectors.signatures.slice(1, 3).entries()) {
      const payload = index === 0 ? file('payload.json', vector.sig_payload) : '-';
      const args = [
        'sign',
        '--event-type',
        vector.event_type,
        '--ledger-id',
        vector.ledger_id,
        '--payload',
        payload,
        '--key',
        key,
      ];
      const { code, out, err } = await run(args, JSON.stringify(vector.sig_payload));
      expect({ code, err }).toEqual({ code: 0, err: '' });
      expect(out).toBe(
        `canonical  ${vector.canonical_json}\ndigest     ${vector.digest_hex}\nsignature  ${vector.signature_base64}\n`,
      );
    }
  });

  it('shows JSON with the headers to send', async () => {
    const [vector] = vectors.signatures;
    const args = [
      'sign',
      '--json',
      '--event-type',
      vector?.event_type ?? '',
      '--ledger-id',
      vector?.ledger_id ?? '',
      '--payload',
      '-',
    ];
    const { out } = await run([...args, '--key', key, '--key-id', vectors.kid], JSON.stringify(vector?.sig_payload));
    expect(JSON.parse(out)).toMatchObject({
      digest: vector?.digest_hex,
      headers: { 'X-Actor-Sig': vector?.signature_base64, 'X-Signing-Key-ID': vectors.kid },
    });
  });

  it('signs an entity request', async () => {
    const args = [
      'sign',
      '--json',
      '--entity-request',
      '--actor-id',
      actorId,
      '--method',
      'POST',
      '--path',
      '/v1/entities/root-ledger',
    ];
    const { code, out } = await run([...args, '--timestamp', '2026-11-21T02:06:39.000Z', '--key', key]);
    expect(code).toBe(0);
    const shown = JSON.parse(out) as { canonical_json: string };
    expect(shown).toMatchObject({
      event_type: 'ENTITY_REQUEST',
      ledger_id: actorId,
      headers: { 'X-Timestamp': '2026-11-21T02:06:39.000Z' },
    });
    expect(JSON.parse(shown.canonical_json)).toMatchObject({ method: 'POST', path: '/v1/entities/root-ledger' });
  });

  const refused: [string, string][] = [
    ['a member given twice', '{"a":1,"a":2}'],
    ['a number that would change', '{"a":9007199254740993}'],
    ['a list', '[1]'],
    ['no JSON', '{'],
  ];
  it.each(refused)('refuses %s with one sentence', async (_, payload) => {
    const { code, out, err } = await run(
      ['sign', '--event-type', 'A', '--ledger-id', ledgerId, '--payload', '-', '--key', key],
      payload,
    );
    expect({ code, out }).toEqual({ code: 66, out: '' });
    expect(err).toMatch(/^ledger-trust: stdin holds no payload: [^\n]+\n$/);
  });

  it.each([
    ['a ledger id that is none', ['--event-type', 'A', '--ledger-id', 'nope'], '--ledger-id must be a UUID'],
    [
      'an event type that is none',
      ['--event-type', 'bad type', '--ledger-id', ledgerId],
      '--event-type must be a letter',
    ],
    ['no ledger id', ['--event-type', 'A'], '--ledger-id is needed'],
    [
      'a key id that is none',
      ['--event-type', 'A', '--ledger-id', ledgerId, '--key-id', 'key-1'],
      '--key-id must be svc:',
    ],
    ['an actor id that is none', ['--entity-request', '--actor-id', 'nope'], '--actor-id must be a UUID'],
    [
      'a time that is none',
      ['--entity-request', '--actor-id', actorId, '--method', 'GET', '--path', '/v1', '--timestamp', 'now'],
      '--timestamp must be an RFC 3339 time',
    ],
  ])('does not sign with %s, which could never verify', async (_, args, sentence) => {
    const { code, out, err } = await run(['sign', '--key', key, '--payload', '-', ...args], '{}');
    expect({ code, out, err }).toEqual({ code: 64, out: '', err: expect.stringContaining(`Option ${sentence}`) });
  });

  it('refuses a file that holds no private key, and does not show what it holds', async () => {
    const secret = file('secret.txt', 'hunter2');
    const { code, err } = await run(
      ['sign', '--event-type', 'A', '--ledger-id', ledgerId, '--payload', '-', '--key', secret],
      '{}',
    );
    expect(code).toBe(66);
    expect(err).not.toContain('hunter2');
  });
});

describe('verify', () => {
  it('finds an export valid by itself, and says where the keys are from', async () => {
    const { code, out, err } = await run(['verify', file('good.jsonl', exported())]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^VALID/);
    expect(out).toContain('9 contents and 9 chain hashes of 9 events');
    expect(out).toContain('The keys are from the file itself');
  });

  it('finds a saved answer valid with documents from elsewhere', async () => {
    const { code, out } = await run(['verify', file('answer.json', answer), ...offline, '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      verdict: 'valid',
      verified: true,
      checked: { actor_signatures: 7 },
      keys_from: `from ${keysFile}`,
    });
  });

  it('reads stdin, and a list that was asked for newest first', async () => {
    expect((await run(['verify', '-', ...offline], JSON.stringify([...events].reverse()))).code).toBe(0);
  });

  const tampered = events.map((event, index) =>
    index === 4 ? { ...event, payload: { ...event.payload, weight: 13 } } : event,
  );

  it('ends with 1 and names the event where one was changed', async () => {
    const { code, out } = await run(['verify', file('tampered.jsonl', exported(tampered))]);
    expect(code).toBe(1);
    expect(out).toMatch(/^INVALID {2}2 things are wrong/);
    expect(out).toContain(`✗ hash_mismatch  event ${vectors.chain[4]?.content.id}`);
  });

  it('ends with 2 where nothing is wrong and keys are missing', async () => {
    const { code, out } = await run(['verify', file('bare.json', events), '--keys', keysFile]);
    expect(code).toBe(2);
    expect(out).toContain('? authority_keys_unknown  3 of the events');
  });

  it.each([
    ['an answer', () => file('nothing.json', { ...answer, count: 0, events: [] })],
    ['a list', () => file('nothing.list.json', [])],
    ['an export', () => file('nothing.jsonl', exported([]))],
  ])('ends with 2 where %s holds no event', async (_, path) => {
    const { code, out } = await run(['verify', path(), ...offline]);
    expect({ code, told: out.includes('? start_unknown  there is no event\n') }).toEqual({ code: 2, told: true });
  });

  it('ends with 2 where more events follow', async () => {
    const { code, out } = await run(['verify', file('page.json', { ...answer, next_cursor: 'x' }), ...offline]);
    expect(code).toBe(2);
    expect(out).toContain('end_unknown');
  });

  it('ends with 1 where an event known from before is missing', async () => {
    const args = [
      'verify',
      file('short.jsonl', exported(events.slice(0, 7))),
      '--head',
      String(vectors.chain[8]?.hash),
    ];
    expect((await run(args)).code).toBe(1);
    expect((await run(args.slice(0, 2))).code).toBe(0);
  });

  it('checks a master’s list as one', async () => {
    const ofMaster = events.filter(({ master_id }) => master_id === '0193a000-0000-7000-8000-0000000000aa');
    const list = { master_uuid: ofMaster[0]?.master_id, ledger_id: ledgerId, events: ofMaster };
    const { code, out } = await run(['verify', file('master.json', list), ...offline]);
    expect({ code, issues: out.includes('✗') }).toEqual({ code: 2, issues: false });
    const cut = { ...list, events: ofMaster.filter((_, index) => index !== 1) };
    expect((await run(['verify', file('cut.json', cut), ...offline])).code).toBe(1);
  });

  const unreadable: [string, () => string][] = [
    ['a file that is not there', () => join(dir, 'nowhere.json')],
    ['a directory', () => dir],
    ['a file without events', () => file('none.json', { hello: 1 })],
    ['what is no JSON', () => file('text.json', 'hello')],
    ['a member given twice', () => file('twice.json', JSON.stringify(events).replace('"seq":3', '"seq":9,"seq":3'))],
    ['an event without a hash', () => file('hashless.json', [{ ...events[0], hash: undefined }])],
    ['an export cut short', () => file('cut.jsonl', exported().split('\n').slice(0, 5).join('\n'))],
    ['an export whose count is another', () => file('count.jsonl', exported(events, 8))],
  ];
  it.each(unreadable)('refuses %s with one sentence', async (_, path) => {
    const file = path();
    const { code, out, err } = await run(['verify', file]);
    expect({ code, out }).toEqual({ code: 66, out: '' });
    expect(err).toMatch(/^ledger-trust: [^\n]+\n$/);
    expect(err).toContain(file);
  });

  it.each(['--keys', '--authority'])('refuses documents of %s that are none, and names their file', async (option) => {
    for (const content of ['no JSON', '{"keys":7}']) {
      const documents = file('documents.json', content);
      const { code, out, err } = await run(['verify', file('bare.json', events), option, documents]);
      expect({ code, out }).toEqual({ code: 66, out: '' });
      expect(err).toContain(`${documents} holds no `);
    }
  });

  it('is no verdict where the resolver does not answer', async () => {
    const { code, out, err } = await run([
      'verify',
      file('good.jsonl', exported()),
      '--resolver',
      'http://127.0.0.1:1',
    ]);
    expect({ code, out }).toEqual({ code: 69, out: '' });
    expect(err).toMatch(/^ledger-trust: [^\n]+\n$/);
  });

  it('names each exit code in its help', async () => {
    const { out } = await run(['verify', '--help']);
    for (const code of [0, 1, 2, 64, 66, 69]) expect(out).toMatch(new RegExp(`^  ${code} +\\w`, 'm'));
  });
});

describe('the command line', () => {
  const wrong = [
    ['verify'],
    ['verify', 'x', '--kind', 'other'],
    ['nonsense'],
    ['keygen', '--nonsense'],
    ['verify', 'x', '--resolver', 'http://127.0.0.1:1', '--keys', 'x'],
    ['sign'],
    ['keygen', '--out', 'x', '--from', 'x'],
    ['export', 'x'],
    [],
  ];
  it.each(wrong.map((args) => [args.join(' '), args] as const))('"%s" is a wrong usage', async (_, args) => {
    const { code, err } = await run(args);
    expect(code).toBe(64);
    expect(err).not.toBe('');
  });

  it('export without an API key says where to put one', async () => {
    const { code, err } = await run(['export', ledgerId, '--url', 'http://127.0.0.1:1']);
    expect({ code, err }).toEqual({
      code: 1,
      err: 'ledger-trust: An API key is needed: give --api-key-file, or set LEDGER_TRUST_API_KEY.\n',
    });
  });

  it('shows its version and its help', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    expect(await run(['--version'])).toEqual({ code: 0, out: `${version}\n`, err: '' });
    const { code, out } = await run(['--help']);
    expect(code).toBe(0);
    for (const name of ['keygen', 'sign', 'verify', 'export', 'serve', 'backup', 'authority'])
      expect(out).toContain(name);
  });

  it('ends quietly when its reader has seen enough', async () => {
    const path = file('good.jsonl', exported());
    const ended = await new Promise<number | null>((resolve) => {
      const child = spawn(process.execPath, [main, 'verify', path, '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
      child.stdout.destroy();
      child.on('close', resolve);
    });
    expect(ended).toBe(0);
  });
});
