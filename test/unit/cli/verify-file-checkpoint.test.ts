import { generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { eventToJson } from '../../../src/client/call/answer-encoding.ts';
import type { Event } from '../../../src/client/index.ts';
import { signCheckpoint } from '../../../src/domain/log/checkpoint.ts';
import { originOf } from '../../../src/domain/log/origin.ts';
import { actor, authority, exported, ledgerId, listOfMaster, noteOf } from '../../support/export-of-vectors.ts';
import { forgedLedger } from '../../support/forged-events.ts';
import { vectorSigner } from '../../support/log-keys.ts';
import { logVectors } from '../../support/log-vectors.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';
import { at, chain, checkpointOf } from '../../support/vector-chain.ts';

const { file } = newShell();
const keysFile = file('keys.json', actor);
const authorityFile = file('authority.json', authority);
const offline = ['--keys', keysFile, '--authority', authorityFile];
const key = logVectors.log_key.public_key_base64;
const service = 'ledger.example/v1';
const [master] = logVectors.masters;

/** The ledger before it was closed: actors signed the last six of its eight events. */
const open = chain.slice(0, 8);
const json = (list: readonly Event[]) => list.map((event) => JSON.parse(eventToJson(event)));
const whole = (list: readonly unknown[], checkpoint?: unknown, documents: object = {}) =>
  exported(
    list,
    { kind: 'ledger' },
    {},
    { actor, authority, ...documents, ...(checkpoint === undefined ? {} : { checkpoint }) },
  );
const ofFormat1 = (list: readonly unknown[]) => exported(list, { kind: 'ledger' }, { format: 'ledger-trust-export/1' });

let files = 0;
const verify = (content: string, ...options: string[]) =>
  runHere(['verify', file(`export-${files++}.jsonl`, content), ...options]);
/** The trust anchor with other values for some members of its log. */
const anchorWith = (log: object | null, phase = '2') =>
  file(`anchor-${files++}.json`, { ...authority, phase, log: log === null ? null : { ...authority.log, ...log } });

describe('the checkpoint in an export', () => {
  it('covers the events behind the last seal', async () => {
    const { code, out, err } = await verify(whole(json(open), noteOf(8)), ...offline);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^VALID .*: 8 events, 6 signatures, 2 seals, chain whole\n/);
    expect(out).toContain(`\n  checkpoint  of 8 events in ${service}/ledgers/${ledgerId}: root recomputed\n`);
  });

  it.each([
    ['an export of before', ofFormat1(json(open))],
    ['an export whose service gave none', whole(json(open))],
    ['a saved answer', JSON.stringify({ ledger_id: ledgerId, events: json(open) })],
  ])('is missing in %s, which leaves its last events open', async (_, content) => {
    const { code, out } = await verify(content, ...offline);
    expect(code).toBe(2);
    expect(out).toMatch(
      /^INCOMPLETE {2}8 events, 6 signatures, 2 seals; not verified: the order and the dates of the last events\n/,
    );
    expect(out).toContain(
      '  ? order_unsigned  the order and the dates of the last 6 events: no seal and no checkpoint covers them\n',
    );
    expect(out).toContain('! The service signs order and dates by a checkpoint: export anew, or ');
    const shown = JSON.parse((await verify(content, ...offline, '--json')).out);
    expect(shown).toMatchObject({ verdict: 'incomplete', verified: false, issues: [], checkpoint: null });
    expect(shown.incomplete).toMatchObject([{ type: 'order_unsigned', event_id: at(2).id, count: 6 }]);
  });

  it('may be by a log key that is newer than the trusted anchor, if a key of that anchor has endorsed it', async () => {
    const saved = ['--keys', keysFile, '--authority', anchorWith({ keys: [] })];
    expect((await verify(whole(json(open), noteOf(8)), ...saved)).code).toBe(0);
    const keys = authority.log.keys.map((one) => ({ ...one, endorsement: null }));
    const unendorsed = { authority: { ...authority, log: { ...authority.log, keys } } };
    const { code, err } = await verify(whole(json(open), noteOf(8), unendorsed), ...saved);
    expect([code, err]).toEqual([1, expect.stringContaining('unknown_log_key')]);
  });

  it('of a master covers its events, but for their tie to the ledger', async () => {
    const ofMaster = (checkpoint: string) =>
      exported(
        listOfMaster.events,
        { kind: 'master' },
        { master_id: listOfMaster.master_uuid },
        { actor, authority, checkpoint },
      );
    const { code, out } = await verify(ofMaster(noteOf(4, master)), ...offline, '--json');
    expect({ code, reasons: JSON.parse(out).incomplete.map(({ type }: { type: string }) => type) }).toEqual({
      code: 2,
      reasons: ['hash_unchecked'],
    });
    const other = await verify(ofMaster(noteOf(8)), ...offline);
    expect(other).toMatchObject({ code: 1, out: '', err: expect.stringContaining('(wrong_origin)') });
  });
});

describe('the keys of the checkpoint in an export', () => {
  const content = whole(json(open), noteOf(8));
  const unendorsed = authority.log.keys.map((one) => ({ ...one, endorsement: null }));
  const underAnchor = (path: string, text = content) => verify(text, '--keys', keysFile, '--authority', path);

  it('are those that the authority has endorsed', async () => {
    const badly = unendorsed.map((one) => ({
      ...one,
      endorsement: { kid: 'svc:authority#key-1', sig: at(0).authoritySig },
    }));
    for (const keys of [unendorsed, badly, []]) {
      const inFile = { authority: { ...authority, log: { ...authority.log, keys } } };
      const options = ['--keys', keysFile, '--authority', anchorWith({ keys })];
      expect(await verify(whole(json(open), noteOf(8), inFile), ...options)).toMatchObject({
        code: 1,
        out: '',
        err: expect.stringContaining('(unknown_log_key)'),
      });
    }
    // In development mode the authority endorses nothing.
    expect((await underAnchor(anchorWith({ keys: unendorsed }, '1'))).code).toBe(0);
  });

  it('are of the service that the trust anchor names, or of a name that it had before', async () => {
    const other = await underAnchor(anchorWith({ origin: 'other.example/v1' }, '1'));
    expect(other).toMatchObject({ code: 1, out: '', err: expect.stringContaining('(wrong_origin)') });
    const previous = [{ ...authority.log, ended_at: '2026-11-22T00:00:00.000Z' }];
    expect((await underAnchor(anchorWith({ origin: 'other.example/v1', keys: [], previous }))).code).toBe(0);
  });

  it('do not exist where the trust anchor names nobody who signs checkpoints', async () => {
    for (const anchor of [anchorWith(null), anchorWith({ origin: 'no name' })]) {
      const { code, out } = await underAnchor(anchor);
      expect({ code, told: out.includes('? order_unsigned') }).toEqual({ code: 2, told: true });
    }
  });

  it('are not taken from the file, unless the user trusts it', async () => {
    for (const options of [[], ['--keys', keysFile]]) {
      const { code, out } = await verify(content, ...options);
      expect({ code, told: out.includes('? order_unsigned') }).toEqual({ code: 2, told: true });
    }
    expect((await verify(content, '--trust-file-keys')).code).toBe(0);
    // A forger's own keys and checkpoint: everything fits, and nobody vouches for it.
    const forger = forgedLedger();
    const keys = actor.keys.map((one) => ({ ...one, public_key: forger.supplier }));
    const anchor = {
      ...authority,
      phase: '1',
      keys: authority.keys.map((one) => ({ ...one, public_key: forger.authority })),
    };
    const origin = originOf({ serviceName: service, kind: 'ledger', id: ledgerId });
    const note = signCheckpoint({ origin, size: 1, root: new Uint8Array(32) }, vectorSigner);
    const documents = { actor: { ...actor, keys }, authority: anchor };
    const forged = await verify(whole(forger.json.slice(0, 8), note, documents));
    expect(forged.code).toBe(2);
    expect(forged.out).toContain('whose keys these are');
  });

  it('are those of the command line, if some are given', async () => {
    const given = ['--log-key', key, '--origin', service];
    expect((await verify(content, '--keys', keysFile, '--authority', anchorWith(null), ...given)).code).toBe(0);
    const supplier = String(actor.keys[0]?.public_key);
    const byOther = await verify(content, ...offline, '--log-key', supplier, '--origin', service);
    expect(byOther).toMatchObject({ code: 1, err: expect.stringContaining('(unknown_log_key)') });
    const alone = await verify(whole(json(open)), ...offline, ...given);
    expect(alone).toMatchObject({ code: 64, out: '', err: expect.stringContaining('holds no checkpoint') });
  });

  it('are also those of a checkpoint beside it for which no key is given', async () => {
    const note = file('note', noteOf(8));
    const saved = JSON.stringify({ ledger_id: ledgerId, events: json(open) });
    expect((await verify(saved, ...offline, '--checkpoint', note)).code).toBe(0);
    expect((await verify(content, '--trust-file-keys', '--checkpoint', note)).code).toBe(0);
    for (const options of [[], ['--keys', keysFile], ['--keys', keysFile, '--authority', anchorWith(null)]])
      expect(await verify(content, ...options, '--checkpoint', note)).toMatchObject({
        code: 64,
        out: '',
        err: expect.stringContaining('give --log-key and --origin'),
      });
  });
});

describe('a checkpoint beside that of the export', () => {
  const log = { serviceName: service, kind: 'ledger', id: ledgerId } as const;
  const other = (size: number) =>
    signCheckpoint({ origin: originOf(log), size, root: new Uint8Array(32) }, vectorSigner);
  const beside = async (content: string, note: string, ...options: string[]) => {
    const { code, out } = await verify(
      content,
      ...offline,
      '--checkpoint',
      file(`beside-${files++}`, note),
      ...options,
    );
    return { code, out };
  };

  it('counts, and so does that of the export', async () => {
    const { code, out } = await beside(whole(json(open), noteOf(8)), noteOf(5));
    expect(code).toBe(0);
    const line = (size: number) =>
      `  checkpoint  of ${size} events in ${service}/ledgers/${ledgerId}: root recomputed\n`;
    expect(out).toContain(line(8) + line(5));
    expect(out).not.toContain('came after the checkpoint');
    const older = await beside(whole(json(open), noteOf(5)), noteOf(8), '--json');
    const shown = JSON.parse(older.out);
    const coverage = (size: number) => ({ origin: originOf(log), size, verified: true, not_covered: 8 - size });
    expect([older.code, shown.checkpoint, shown.checkpoints]).toEqual([0, coverage(8), [coverage(8), coverage(5)]]);
    const same = await beside(whole(json(open), noteOf(8)), noteOf(8), '--json');
    expect(JSON.parse(same.out).checkpoints).toEqual([coverage(8)]);
  });

  it.each([5, 8])(
    'of %i events that contradicts it makes the result invalid, whichever of the two it is',
    async (size) => {
      for (const [inFile, given] of [
        [noteOf(8), other(size)],
        [other(size), noteOf(8)],
      ] as const) {
        const { code, out } = await beside(whole(json(open), inFile), given);
        expect(code).toBe(1);
        expect(out).toContain(`✗ wrong_checkpoint `);
        expect(out).toContain(`the first ${size} events do not have the root of the checkpoint`);
      }
    },
  );

  it('that is longer finds that the export was cut off with an older checkpoint', async () => {
    const { code, out } = await beside(whole(json(open.slice(0, 5)), noteOf(5)), noteOf(8));
    expect({ code, told: out.includes('✗ shorter_than_checkpoint') }).toEqual({ code: 1, told: true });
  });

  it('that contradicts it is found also where not all events that they cover are there', async () => {
    const content = whole(json(open.toSpliced(4, 1)), noteOf(8));
    const asSegment = (note: string) => beside(content, note, '--kind', 'segment');
    expect((await asSegment(noteOf(8))).code).toBe(2);
    expect((await asSegment(noteOf(5))).code).toBe(2);
    const { code, out } = await asSegment(other(8));
    expect(code).toBe(1);
    expect(out).toContain('✗ wrong_checkpoint');
    expect(out).toContain('two checkpoints of 8 events have different roots');
  });

  describe('under keys of its own', () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
    const later = (serviceName: string) =>
      signCheckpoint(
        { origin: originOf({ ...log, serviceName }), size: 8, root: checkpointOf(8).root },
        { serviceName, publicKey: raw, sign: (message) => sign(null, message, privateKey) },
      );
    const underOldKey = async (inFile: string, ...trusted: string[]) => {
      const path = file(`kept-${files++}`, noteOf(5));
      const given = ['--keys', keysFile, '--checkpoint', path, '--log-key', key, '--origin', service];
      return verify(whole(json(open), inFile), ...given, ...trusted);
    };

    it.each([service, 'ledger.example/v2'])(
      'says nothing of the signer of an export that was made since, under another key, of %s',
      async (serviceName) => {
        const { code, out } = await underOldKey(later(serviceName));
        expect(code).toBe(2);
        expect(out).toContain(`  checkpoint  of 5 events in ${originOf(log)}: root recomputed\n`);
        const keys = [{ ...authority.log.keys[0], public_key: raw.toString('base64'), endorsement: null }];
        const vouching = anchorWith({ origin: serviceName, keys }, '1');
        const trusted = await underOldKey(later(serviceName), '--authority', vouching);
        expect(trusted.code).toBe(0);
        expect(trusted.out).toContain('checkpoint  of 8 events');
        const other = await underOldKey(later(serviceName), '--authority', authorityFile);
        expect(other).toMatchObject({ code: 1, out: '' });
      },
    );

    it('is the signer of the export too, where that fits', async () => {
      expect((await underOldKey(noteOf(8), '--authority', anchorWith(null))).code).toBe(0);
      const changed = await underOldKey(noteOf(8).replace('\n8\n', '\n7\n'));
      expect(changed).toMatchObject({ code: 1, out: '', err: expect.stringContaining('(invalid_signature)') });
    });
  });

  it('that is refused is refused, and so is that of the export', async () => {
    const changed = noteOf(8).replace('\n8\n', '\n7\n');
    for (const [inFile, given] of [
      [noteOf(8), changed],
      [changed, noteOf(8)],
    ] as const) {
      const path = file(`refused-${files++}`, given);
      const { code, out, err } = await verify(whole(json(open), inFile), ...offline, '--checkpoint', path);
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toContain('(invalid_signature)');
    }
  });
});

describe('a line with a checkpoint', () => {
  const line = (value: unknown) => `${JSON.stringify({ checkpoint: value })}\n`;
  const note = noteOf(8);

  it.each([
    ['in an export of before', ofFormat1(json(open)).replace('{"end"', `${line(note)}{"end"`)],
    ['twice', whole(json(open), note).replace('{"end"', `${line(note)}{"end"`)],
    ['in a segment', exported(json(open), { kind: 'segment' }, {}, { actor, authority, checkpoint: note })],
    ['that is no text', whole(json(open), { note })],
    ['behind the end', `${whole(json(open))}${line(note)}`],
    ['that holds no note', whole(json(open), 'no note')],
    ['that holds another text behind the note', whole(json(open), `${note}\naudited\n`)],
  ])('%s is refused, whichever keys are trusted', async (_, content) => {
    for (const options of [offline, [], ['--trust-file-keys'], ['--keys', keysFile]]) {
      const { code, out, err } = await verify(content, ...options);
      expect({ code, out }).toEqual({ code: 66, out: '' });
      expect(err).toMatch(/^ledger-trust: [^\n]+\n$/);
    }
  });

  it('whose note was changed is refused', async () => {
    const changed = await verify(whole(json(open), note.replace('\n8\n', '\n7\n')), ...offline);
    expect(changed).toMatchObject({ code: 1, out: '', err: expect.stringContaining('(invalid_signature)') });
  });
});
