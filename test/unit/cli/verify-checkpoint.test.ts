import { describe, expect, it } from 'vitest';
import { formatVkey } from '../../../src/domain/log/log-key.ts';
import { actor, answer, authority, events, exported, ledgerId, listOfMaster } from '../../support/export-of-vectors.ts';
import { vectorKey } from '../../support/log-keys.ts';
import { logVectors } from '../../support/log-vectors.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';

const { file } = newShell();
const offline = ['--keys', file('keys.json', actor), '--authority', file('authority.json', authority)];
const service = 'ledger.example/v1';
const key = logVectors.log_key.public_key_base64;
const [master] = logVectors.masters;
const masterId = listOfMaster.master_uuid;

const noteOf = (size: number, log: (typeof logVectors)['masters'][number] = logVectors.ledger) =>
  log.checkpoints.find((one) => one.size === size)?.note ?? '';

let files = 0;
/** Verifies an export with the checkpoint of a size, or a given note. */
async function verify(content: unknown, note: number | string, ...options: string[]) {
  const checkpoint = file(`checkpoint-${files}`, typeof note === 'number' ? noteOf(note) : note);
  const keyed = options.includes('--log-key') ? [] : ['--log-key', key, '--origin', service];
  const path = file(`events-${files++}.jsonl`, content);
  return runHere(['verify', path, ...offline, '--checkpoint', checkpoint, ...keyed, ...options]);
}
const whole = exported(events, { kind: 'ledger' });
const first = (count: number, kind = 'ledger') => exported(events.slice(0, count), { kind });

describe('verify --checkpoint', () => {
  it('recomputes the root of a checkpoint of the whole ledger', async () => {
    const { code, out, err } = await verify(whole, 9);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^VALID/);
    expect(out).toContain(`\n  checkpoint  of 9 events in ${service}/ledgers/${ledgerId}: root recomputed\n`);
    expect(out).not.toContain('not cover');
  });

  it('takes each checkpoint of the vectors, and lists what it does not cover', async () => {
    for (const { size } of logVectors.ledger.checkpoints) {
      const { code, out } = await verify(whole, size, '--json');
      expect({ size, code }).toEqual({ size, code: 0 });
      const origin = `${service}/ledgers/${ledgerId}`;
      expect(JSON.parse(out).checkpoint).toEqual({ origin, size, verified: true, not_covered: 9 - size });
    }
    expect((await verify(whole, 7)).out).toContain('! The last 2 events came after the checkpoint');
  });

  it('takes a vkey, and the origin of the log in place of the name of the service', async () => {
    const origin = logVectors.ledger.origin;
    for (const given of [logVectors.ledger.vkey, formatVkey(service, vectorKey.publicKey)])
      expect(await verify(whole, 9, '--log-key', given, '--origin', origin)).toMatchObject({ code: 0, err: '' });
  });

  it('takes the export of a master with a checkpoint of the master', async () => {
    const ofMaster = exported(listOfMaster.events, { kind: 'master' }, { master_id: masterId });
    const { code, out } = await verify(ofMaster, noteOf(4, master), '--json');
    expect(JSON.parse(out).checkpoint).toEqual({ origin: master?.origin, size: 4, verified: true, not_covered: 0 });
    // A master alone has no tie to its ledger.
    expect(code).toBe(2);
    expect(JSON.parse(out).issues).toEqual([]);
  });

  it('says that a whole export with fewer events is shorter than the checkpoint', async () => {
    for (const count of [8, 5, 1]) {
      const { code, out } = await verify(first(count), 9);
      expect({ count, code }).toEqual({ count, code: 1 });
      expect(out).toMatch(new RegExp(`✗ shorter_than_checkpoint .* covers 9 events, and there are only ${count}`));
    }
  });

  it('says that another history has another root', async () => {
    const [genesis, ...others] = events;
    const changed = [genesis, ...others.map((event, at) => (at === 3 ? { ...event, hash: '0'.repeat(64) } : event))];
    const { code, out } = await verify(exported(changed, { kind: 'ledger' }), 9);
    expect(code).toBe(1);
    expect(out).toMatch(/✗ wrong_checkpoint .*the first 9 events do not have the root/);
    expect((await verify(exported(changed, { kind: 'ledger' }), 4)).out).not.toContain('wrong_checkpoint');
  });

  it('says that the root was recomputed only where each hash was recomputed from its event', async () => {
    const changed = events.map((event, at) => (at === 4 ? { ...event, payload: { n: 'changed' } } : event));
    const { code, out } = await verify(exported(changed, { kind: 'ledger' }), 9);
    expect(code).toBe(1);
    expect(out).toContain('✗ hash_mismatch');
    expect(out).toContain(': root of the hashes in the file, not all of which could be recomputed\n');
  });

  it('says that a ledger with an event left out has another root', async () => {
    const { code, out } = await verify(exported(events.toSpliced(4, 1), { kind: 'ledger' }), 9);
    expect(code).toBe(1);
    expect(out).toContain('✗ wrong_checkpoint');
  });

  it('leaves the checkpoint of a segment unchecked', async () => {
    const segment = exported([...events.slice(0, 3), ...events.slice(5)], { kind: 'segment' });
    const { code, out } = await verify(segment, 9);
    expect(code).toBe(2);
    expect(out).toContain('? checkpoint_unchecked  the checkpoint covers 9 events, and not all of them are at hand');
    expect(out).toMatch(/^INCOMPLETE.*the checkpoint, for lack of events that it covers/);
  });

  it('takes a saved answer that holds all events of the checkpoint, and leaves another one unchecked', async () => {
    expect(await verify(answer, 9)).toMatchObject({ code: 0 });
    const { code, out } = await verify({ ...answer, events: events.slice(0, 5) }, 9);
    expect(code).toBe(2);
    expect(out).toContain('? checkpoint_unchecked');
  });

  it.each([
    ['of another ledger', noteOf(4, master), 'wrong_origin'],
    ['under another name of the key', noteOf(9).replace(/— \S+/, '— other.example'), 'unknown_log_key'],
    ['that was changed', noteOf(9).replace('\n9\n', '\n8\n'), 'invalid_signature'],
  ])('refuses a checkpoint %s', async (_what, note, reason) => {
    const { code, out, err } = await verify(whole, note);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain(`(${reason})`);
  });

  it('refuses a checkpoint by another key, and of another service', async () => {
    const supplier = actor.keys[0]?.public_key ?? '';
    const byOther = await verify(whole, 9, '--log-key', supplier, '--origin', service);
    expect(byOther).toMatchObject({ code: 1, err: expect.stringContaining('(unknown_log_key)') });
    for (const other of ['other.example/v1', `${service}/ledgers/${masterId}`])
      expect(await verify(whole, 9, '--log-key', key, '--origin', other)).toMatchObject({
        code: 1,
        err: expect.stringContaining('(wrong_origin)'),
      });
  });

  it('ends without a result where the command line is wrong, or a file holds something else', async () => {
    const path = file('any.jsonl', whole);
    const note = file('any-note', noteOf(9));
    for (const wrong of [
      ['--checkpoint', note],
      ['--checkpoint', note, '--log-key', key],
      ['--log-key', key, '--origin', service],
      ['--checkpoint', note, '--log-key', 'AAAA', '--origin', service],
      ['--checkpoint', note, '--log-key', key, '--origin', 'https://ledger.example'],
    ])
      expect(await runHere(['verify', path, ...wrong])).toMatchObject({ code: 64, out: '' });
    const noKey = ['--checkpoint', note, '--log-key', 'AAAA', '--origin', service];
    expect((await runHere(['verify', path, ...noKey])).err).toMatch(/"AAAA" is no log key: [^.]+\.\n$/);
    for (const content of ['no note', Buffer.from([0xff, 0x0a]).toString('latin1')])
      expect(await verify(whole, content)).toMatchObject({ code: 66, out: '' });
    const missing = ['--checkpoint', `${note}-missing`, '--log-key', key, '--origin', service];
    expect(await runHere(['verify', path, ...missing])).toMatchObject({ code: 66 });
  });

  it('needs to know of which ledger a bare list of events is', async () => {
    expect(await verify(events, 9)).toMatchObject({ code: 66, err: expect.stringContaining('needs an export') });
  });
});
