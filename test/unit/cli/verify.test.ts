import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  actor,
  answer,
  authority,
  events,
  eventsWith,
  exported,
  ledgerId,
  listOfMaster,
  noteOf,
} from '../../support/export-of-vectors.ts';
import { runHere } from '../../support/program-here.ts';
import { inTerminal, whyNoTerminal } from '../../support/pseudo-terminal.ts';
import { cliMain, newShell } from '../../support/shell.ts';
import { vectors } from '../../support/vectors.ts';

const { dir, run, file } = newShell();
const keysFile = file('keys.json', actor);
const authorityFile = file('authority.json', authority);
const offline = ['--keys', keysFile, '--authority', authorityFile];

let files = 0;
async function verify(content: unknown, ...options: string[]) {
  const path = file(`events-${files++}.json`, content);
  return { path, ...(await runHere(['verify', path, ...options])) };
}

describe('verify', () => {
  it('finds an export whole by itself, and says first that its keys are not trusted', async () => {
    const { code, out, err } = await verify(exported(events, { kind: 'ledger' }));
    expect({ code, err }).toEqual({ code: 2, err: '' });
    const [first] = out.split('\n');
    expect(first).toBe(
      'INCOMPLETE  9 events, 7 signatures, 3 seals, chain whole; not verified: whose keys these are (give --resolver URL)',
    );
    expect(out).toContain('9 contents and 9 chain hashes of 9 events');
    expect(out).toContain('! The keys come from the file itself');
  });

  it('finds an export valid by itself with --trust-file-keys', async () => {
    const { code, out, err } = await verify(exported(events, { kind: 'ledger' }), '--trust-file-keys');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(
      /^VALID {2}everything was recomputed and verified: 9 events, 7 signatures, 3 seals, chain whole\n/,
    );
    expect(out).not.toMatch(/[?!✗]/);
  });

  it.skipIf(whyNoTerminal !== null)('shows its progress on a terminal', () => {
    const { status, shown } = inTerminal([process.execPath, cliMain, 'verify', file('shown.jsonl', exported())]);
    expect(status).toBe(2);
    const drawn = [...shown.matchAll(/(\d+) of 9 events/g)].map(([, value]) => value);
    expect([drawn[0], drawn.at(-1)]).toEqual(['0', '9']);
  });

  it('finds an export valid, whatever characters its payloads contain', async () => {
    const content = exported(eventsWith({ 'note\u2028': '\u2028 \u2029 \u0085 \r\n \v \f 😀' }));
    expect(content).toContain('\u2028');
    for (const [args, input] of [
      [['verify', file('unusual.jsonl', content)], ''],
      [['verify', '-'], content],
      [['verify', file('returns.jsonl', content.replaceAll('\n', '\r\n'))], ''],
    ] as const) {
      const ended = input === '' ? await runHere([...args, ...offline]) : await run([...args, ...offline], input);
      expect(ended).toMatchObject({ code: 0, err: '' });
    }
  });

  it('finds a saved answer valid with documents from elsewhere', async () => {
    const { code, out } = await verify(answer, ...offline, '--json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      verdict: 'valid',
      verified: true,
      checked: { actor_signatures: 7 },
      keys_from: `from ${keysFile}`,
    });
  });

  it.each([1, 2])('recognizes a saved answer, whatever its payloads contain, such as format %i', async (format) => {
    const list = eventsWith({ format: `ledger-trust-export/${format}` });
    const some = { ...answer, count: 3, events: list.slice(3, 6) };
    expect(JSON.stringify(some).indexOf(`"format":"ledger-trust-export/${format}"`)).toBeLessThan(4_096);
    const { code, err } = await verify(some, ...offline);
    expect({ code, err }).toEqual({ code: 2, err: '' });
  });

  it('reads a list from stdin, also newest first', async () => {
    expect((await runHere(['verify', '-', ...offline], { input: JSON.stringify([...events].reverse()) })).code).toBe(0);
  });

  it('reads an export and documents from stdin', async () => {
    expect((await runHere(['verify', '-', '--trust-file-keys'], { input: exported() })).code).toBe(0);
    const args = ['verify', file('list.json', events), '--keys', '-', '--authority', authorityFile];
    const keys = await runHere(args, { input: exported() });
    expect({ code: keys.code, err: keys.err }).toEqual({ code: 0, err: '' });
    const cut = await runHere(['verify', '-'], { input: exported(events, { count: 8 }) });
    const err = expect.stringMatching(/^ledger-trust: stdin was cut short or changed/);
    expect(cut).toMatchObject({ code: 66, err });
  });

  const tampered = events.map((event, index) =>
    index === 4 ? { ...event, payload: { ...event.payload, weight: 13 } } : event,
  );

  it('exits with 1 and names a changed event', async () => {
    const { code, out } = await verify(exported(tampered));
    expect(code).toBe(1);
    expect(out).toMatch(/^INVALID {2}2 problems/);
    expect(out).toContain(`✗ hash_mismatch  event ${vectors.chain[4]?.content.id}`);
  });

  it('escapes control characters of a file', async () => {
    const forged = '\u001b[2J\r\nVALID  everything\u2028\u0085\u202e';
    const escaped = '\\u001b[2J\\u000d\\u000aVALID  everything\\u2028\\u0085\\u202e';
    const odd = events.map((event, index) => (index === 4 ? { ...event, id: forged } : event));
    const report = await verify(odd, ...offline);
    expect(report).toMatchObject({ code: 1, out: expect.stringContaining(`event ${escaped}: id and ledger_id`) });
    expect(report.out).not.toMatch(/[^\P{Cc}\n]|[\u2028\u202e]|^VALID/mu);
    const asJson = await verify(odd, ...offline, '--json');
    expect(asJson.out).not.toMatch(/[^\P{Cc}\n]|[\u2028\u202e]/u);
    expect(JSON.parse(asJson.out).issues).toContainEqual(expect.objectContaining({ event_id: forged }));
    const strange = odd.map((event) => ({ ...event, [forged]: 1 }));
    const error = await verify(strange, ...offline);
    expect(error).toMatchObject({ code: 66, err: expect.stringContaining(`event.${escaped} is not`) });
    expect(error.err).toMatch(/^ledger-trust: [^\n]+\n$/);
  });

  it('exits with 2 if keys are missing', async () => {
    const { code, out } = await verify(events, '--keys', keysFile);
    expect(code).toBe(2);
    expect(out).toContain('? authority_keys_unknown  3 of the events');
  });

  it.each([
    ['an answer', { ...answer, count: 0, events: [] }],
    ['a list', []],
    ['an export', exported([])],
  ])('exits with 2 if %s contains no event', async (_, content) => {
    const { code, out } = await verify(content, ...offline);
    expect({ code, told: out.includes('? start_unknown  there is no event\n') }).toEqual({ code: 2, told: true });
  });

  it('exits with 2 if more events follow', async () => {
    const { code, out } = await verify({ ...answer, next_cursor: 'x' }, ...offline);
    expect(code).toBe(2);
    expect(out).toContain('end_unknown');
  });

  it('exits with 1 if the event of --head is missing', async () => {
    const short = exported(events.slice(0, 7));
    expect((await verify(short, '--head', String(vectors.chain[8]?.hash))).code).toBe(1);
    const signed = exported(events.slice(0, 7), { kind: 'ledger' }, {}, { actor, authority, checkpoint: noteOf(7) });
    expect((await verify(signed, ...offline)).code).toBe(0);
  });

  it('checks the list of a master', async () => {
    const { code, out } = await verify(listOfMaster, ...offline);
    expect({ code, issues: out.includes('✗') }).toEqual({ code: 2, issues: false });
    const [first, ...rest] = listOfMaster.events;
    const moved = { ...listOfMaster, events: [first, events[5], ...rest] };
    const odd = await verify(moved, ...offline);
    expect(odd.out).toContain('✗ broken_link');
    expect(odd.code).toBe(1);
  });

  it('counts no seal over a hash that it could not recompute, and says so', async () => {
    const { code, out } = await verify(exported(events.slice(1, 2), { kind: 'segment' }), ...offline);
    expect(code).toBe(2);
    expect(out).toMatch(
      /^INCOMPLETE {2}1 event, 0 signatures; .*the tie of some events to the ledger and to their seals/,
    );
    expect(out).toContain('0 of actors and 0 seals of the authority verified');
    expect(out).toMatch(/\? hash_unchecked .* so no seal covers what the event says\n/);
  });

  const other = '0193a000-0000-7000-8000-000000000002';
  const ofMaster = { kind: 'master' };
  const misnamed: [string, string, unknown][] = [
    ['an export of a ledger', 'ledger', exported(events, { kind: 'ledger' }, { ledger_id: other })],
    ['an export of a segment', 'ledger', exported(events.slice(4), { kind: 'segment' }, { ledger_id: other })],
    ['an export of before', 'ledger', exported(events, {}, { ledger_id: other })],
    ['an export of a master', 'master', exported(listOfMaster.events, ofMaster, { master_id: other })],
    [
      'an export of a master',
      'ledger',
      exported(listOfMaster.events, ofMaster, { master_id: listOfMaster.master_uuid, ledger_id: other }),
    ],
    ['an export of a ledger named as a master’s', 'master', exported(events, ofMaster, { master_id: other })],
    ['an answer of a ledger', 'ledger', { ...answer, ledger_id: other }],
    ['an answer of a master', 'master', { ...listOfMaster, master_uuid: other }],
    ['an answer of a master', 'ledger', { ...listOfMaster, ledger_id: other }],
  ];
  it.each(misnamed)('exits with 1 if %s contains events of another %s', async (_, what, content) => {
    for (const kind of [[], ['--kind', 'segment']]) {
      const { code, out } = await verify(content, ...offline, ...kind);
      expect(code).toBe(1);
      expect(out).toMatch(new RegExp(`✗ broken_link .*: the event is one of (another|no) ${what}`));
    }
  });

  it('names the ledger and master that it verified', async () => {
    const { master_uuid } = listOfMaster;
    const whole = `  events      9 of ledger ${ledgerId}\n`;
    const master = `  events      4 of master ${master_uuid} of ledger ${ledgerId}\n`;
    const named: [unknown, string][] = [
      [exported(events, { kind: 'ledger' }), whole],
      [answer, whole],
      [events, whole],
      [exported(events.slice(1, 3), { kind: 'segment' }), `  events      2 of ledger ${ledgerId}\n`],
      [exported(listOfMaster.events, { kind: 'master' }, { master_id: master_uuid }), master],
      [exported(listOfMaster.events, { kind: 'master' }), master],
      [listOfMaster, master],
      [{ ...listOfMaster, events: [] }, `  events      0 of master ${master_uuid} of ledger ${ledgerId}\n`],
      [[], '  events      0\n'],
    ];
    for (const [content, line] of named) {
      const { code, out } = await verify(content, ...offline);
      expect({ code: code === 1, line: out.split('\n')[1] }).toEqual({ code: false, line: line.trimEnd() });
    }
    const { out } = await verify(listOfMaster, '--json');
    expect(JSON.parse(out)).toMatchObject({ ledger_id: ledgerId, master_id: master_uuid, checked: { events: 4 } });
  });

  it.each([
    ['a file that is not there', join(dir, 'nowhere.json')],
    ['a directory', dir],
  ])('refuses %s with one sentence', async (_, path) => {
    const { code, out, err } = await runHere(['verify', path]);
    expect({ code, out }).toEqual({ code: 66, out: '' });
    expect(err).toMatch(/^ledger-trust: [^\n]+\n$/);
    expect(err).toContain(path);
  });

  it.each<[string, unknown]>([
    ['a file without events', { hello: 1 }],
    ['what is no JSON', 'hello'],
    ['a member given twice', JSON.stringify(events).replace('"seq":3', '"seq":9,"seq":3')],
    ['an event without a hash', [{ ...events[0], hash: undefined }]],
    ['an export cut short', exported().split('\n').slice(0, 5).join('\n')],
    ['an export with a wrong beginning', exported().replace('"exported_at"', '"note":"x","exported_at"')],
    ['an export that names two ledgers', exported().replace('"ledger_id"', `"ledger_id":"${dir}","ledger_id"`)],
    ['an export that names no UUID', exported(events, {}, { ledger_id: 'x' })],
    ['an export that is of no time', exported(events, {}, { exported_at: 'audited' })],
    ['an export that names a master oddly', exported(events, {}, { master_id: 7 })],
    ['an answer that names a ledger oddly', { ...answer, ledger_id: 7 }],
    ['an export that names none', exported().replace(/"ledger_id":"[^"]*",/, '')],
    ['an export that is of no kind', exported(events, { kind: 'other' })],
    ['an export whose count is another', exported(events, { count: 8 })],
  ])('refuses %s with one sentence', async (_, content) => {
    const { path, code, out, err } = await verify(content);
    expect({ code, out }).toEqual({ code: 66, out: '' });
    expect(err).toMatch(/^ledger-trust: [^\n]+\n$/);
    expect(err).toContain(path);
  });

  it.each(['--keys', '--authority'])('refuses invalid documents of %s and names their file', async (option) => {
    for (const content of ['no JSON', '{"keys":7}']) {
      const documents = file('documents.json', content);
      const { code, out, err } = await verify(events, option, documents);
      expect({ code, out }).toEqual({ code: 66, out: '' });
      expect(err).toContain(`${documents} holds no `);
    }
  });

  it('exits with 69 if the resolver does not answer', async () => {
    const { code, out, err } = await verify(exported(), '--resolver', 'http://127.0.0.1:1');
    expect({ code, out }).toEqual({ code: 69, out: '' });
    expect(err).toMatch(/^ledger-trust: [^\n]+\n$/);
  });

  it('names each exit code in its help', async () => {
    const { out } = await runHere(['verify', '--help']);
    for (const code of [0, 1, 2, 64, 66, 69]) expect(out).toMatch(new RegExp(`^  ${code} +\\w`, 'm'));
  });

  it('exits quietly when its reader closes the pipe', async () => {
    const path = file('good.jsonl', exported());
    const ended = await new Promise<number | null>((resolve) => {
      const child = spawn(process.execPath, [cliMain, 'verify', path, '--json'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      child.stdout.destroy();
      child.on('close', resolve);
    });
    expect(ended).toBe(2);
  });
});
