import { describe, expect, it } from 'vitest';
import { actor, answer, authority, events, exported } from '../../support/export-of-vectors.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';

const { file } = newShell();
const trust = '--trust-file-keys';
const lines = exported(events, { kind: 'ledger' }).trimEnd().split('\n');
const forged = JSON.stringify({ ...events[4], payload: { ...events[4]?.payload, weight: 99 } });

/** The export with a line put in before the one of that number. */
const withLine = (number: number, line: string) =>
  [...lines.slice(0, number - 1), line, ...lines.slice(number - 1)].join('\n');
const changedLine = (number: number, change: (line: string) => string) =>
  lines.map((line, index) => (index === number - 1 ? change(line) : line)).join('\n');

const padded = String(lines[0]).padEnd(4_096, ' ');

const refused: [string, string, string][] = [
  ['an event far behind the header', changedLine(1, () => `${padded}{"event":${forged}}`), 'holds no events'],
  ['an event behind a return after it', changedLine(1, () => `${padded}\r{"event":${forged}}`), 'holds no events'],
  ['an event behind a return', changedLine(1, (line) => `${line}\r{"event":${forged}}`), 'holds no events'],
  ['a return in the header', changedLine(1, (line) => line.replace(',', ',\r')), 'Line 1'],
  ['a return in a line', changedLine(7, (line) => line.replace('{"event":', '{"event":\r')), 'Line 7'],
  ['an event with a return before it', withLine(7, `\r{"event":${forged}}`), 'Line 7'],
  ['a master that is null', changedLine(1, (line) => line.replace(/}$/, ',"master_id":null}')), 'The first line'],
  ['an event with a space before it', withLine(7, ` {"event":${forged}}`), 'its end does not tell the 10 events'],
  ['an event with a space in it', withLine(7, `{ "event":${forged}}`), 'its end does not tell the 10 events'],
  ['an event with a tab behind it', withLine(7, `{"event"\t:${forged}}\t`), 'its end does not tell the 10 events'],
  ['an event whose name has an escape', withLine(7, `{"\\u0065vent":${forged}}`), 'does not tell the 10 events'],
  ['an event with a member before it', withLine(7, `{"at":1,"event":${forged}}`), 'Line 7'],
  ['an event with a member behind it', changedLine(7, (line) => line.replace(/}$/, ',"note":"x"}')), 'Line 7'],
  ['an event beside a document', withLine(12, JSON.stringify({ actor, event: events[4] })), 'Line 12'],
  ['two events', changedLine(7, (line) => line.replace(/}$/, `,"event":${forged}}`)), 'Line 7'],
  ['a note', withLine(3, '{"note":"this ledger was audited"}'), 'Line 3'],
  ['a list', withLine(3, `[{"event":${forged}}]`), 'Line 3'],
  ['a text', withLine(3, '"note"'), 'Line 3'],
  ['an object without members', withLine(3, '{}'), 'Line 3'],
  ['what is no JSON', withLine(3, '# audited'), 'Line 3'],
  ['a second first line', withLine(3, String(lines[0])), 'Line 3'],
  ['a second trust anchor', withLine(3, JSON.stringify({ authority })), 'Line 13'],
  ['a second document of an actor', withLine(3, JSON.stringify({ actor })), 'Line 12'],
  ['a second end', withLine(14, String(lines.at(-1))), 'Line 14'],
  ['an event behind the end', withLine(14, `{"event":${forged}}`), 'Line 14'],
  ['a member beside the end', changedLine(13, (line) => line.replace(/}$/, ',"note":1}')), 'Line 13'],
  ['a member in the end', changedLine(13, (line) => line.replace(/}}$/, ',"note":1}}')), 'Line 13'],
  ['a field that events do not have', changedLine(7, (line) => line.replace(/}}$/, ',"note":"x"}}')), 'event.note'],
  ['a field given twice', changedLine(7, (line) => line.replace('{"event":{', '{"event":{"id":"x",')), 'Line 7'],
  ['a payload given twice', changedLine(7, (line) => line.replace(/}}$/, ',"payload":{}}}')), 'Line 7'],
  [
    'a member of a payload given twice',
    changedLine(6, (line) => line.replace('"weight":', '"weight":99,"weight":')),
    'Line 6',
  ],
];

describe('a line of an export with', () => {
  it.each(refused)('%s is refused', async (_, content, named) => {
    const { code, out, err } = await runHere(['verify', file('forged.jsonl', content)]);
    expect({ code, out }).toEqual({ code: 66, out: '' });
    expect(err).toMatch(/^ledger-trust: [^\n]+\n$/);
    expect(err).toContain(named);
  });

  it('invalid UTF-8 is refused', async () => {
    const content = Buffer.from(exported());
    content[content.indexOf('BlueDart')] = 0xff;
    const { code, err } = await runHere(['verify', '-'], { input: content });
    expect(code).toBe(66);
    expect(err).toContain('Line 6 of stdin');
  });

  it('white space only is skipped', async () => {
    const spaced = lines.flatMap((line) => [`${line}\r`, '', ' \t\r']).join('\n');
    for (const content of [`${lines.join('\n')}\n\n \n`, spaced]) {
      expect(await runHere(['verify', file('spaced.jsonl', content), trust])).toMatchObject({ code: 0, err: '' });
    }
    const other = await runHere(['verify', file('spaced.jsonl', withLine(3, '\u00a0'))]);
    expect(other).toMatchObject({ code: 66, err: expect.stringContaining('Line 3') });
  });

  it('an event in another JSON notation is read as that event', async () => {
    const content = changedLine(7, (line) => ` ${line.replace('{"event":', '{ "\\u0065vent" : ')}`);
    expect(await runHere(['verify', file('otherwise.jsonl', content), trust])).toMatchObject({ code: 0, err: '' });
  });
});

describe('a saved answer', () => {
  it('is refused with the id of no ledger or master', async () => {
    for (const name of ['ledger_id', 'master_uuid']) {
      const { code, err } = await runHere(['verify', file('odd.json', { ...answer, [name]: 'nonsense' })]);
      expect({ code, told: err.includes(`${name} is not a UUID`) }).toEqual({ code: 66, told: true });
    }
  });

  it('is refused with unknown fields of events', async () => {
    const list = events.map((event, index) => (index === 4 ? { ...event, note: 'x' } : event));
    for (const content of [list, { ...answer, events: list }]) {
      const { code, err } = await runHere(['verify', file('noted.json', content)]);
      expect({ code, told: err.includes('event.note is not a field of an event') }).toEqual({ code: 66, told: true });
    }
  });
});
