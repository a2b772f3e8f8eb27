import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { runHere } from '../support/program-here.ts';
import { testDir } from '../support/running-node.ts';
import { pythonPackages } from './toolchain.ts';
import type { Case } from './verifier-cases.ts';

/**
 * The verifier in Python knows the rules of docs/verifying.md and nothing of ours. It must find what `ledger-trust
 * verify` finds. A rule that it needs for that and that the document lacks is written into the document first.
 */
export const verifier = join(import.meta.dirname, 'verifier');
export const title =
  'a verifier in Python that knows the rules of verifying.md alone finds what ledger-trust verify finds';

/** Packages may have to be fetched. */
export const fewMs = 300_000;
export const manyMs = 1_800_000;

/** Reads files and their options as JSON from stdin, and writes the findings of each. */
const harness = `
import json, sys
from datetime import datetime, timezone
sys.path.insert(0, sys.argv[1])
from verify import NoExport, verify
for export, keys, authority in json.load(sys.stdin):
    try:
        found = verify(export, keys, authority, [], datetime.now(timezone.utc))
    except NoExport as error:
        found = [["", "unreadable"]]
    print(json.dumps(found))
`;

/** A case in files. */
interface Files {
  readonly file: string;
  readonly keys: readonly string[];
  readonly authority: string | null;
}

/** Writes the files of the cases into a folder of the running test. */
function filesOf(cases: readonly Case[]): Files[] {
  const folder = testDir();
  const written = new Map<string, string>();
  const fileOf = (text: string): string => {
    const path = written.get(text) ?? join(folder, `${written.size}`);
    if (!written.has(text)) writeFileSync(path, text, { mode: 0o600 });
    written.set(text, path);
    return path;
  };
  return cases.map(({ text, keys, authority }) => ({
    file: fileOf(text),
    keys: keys.map(fileOf),
    authority: authority === null ? null : fileOf(authority),
  }));
}

/** Returns what the verifier finds in each case. */
async function findings(cases: readonly Files[]): Promise<Finding[][]> {
  const env = await pythonPackages('cryptography==50.0.2');
  const input = JSON.stringify(cases.map(({ file, keys, authority }) => [file, keys, authority]));
  const options = { env, input, encoding: 'utf8', maxBuffer: 1e8 } as const;
  const { status, stdout, stderr } = spawnSync('python3', ['-c', harness, verifier], options);
  if (status !== 0) throw new Error(stderr);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

type Finding = readonly [eventId: string, type: string];

/**
 * The findings at the first event that has any: what is found at later events may follow from it. A contradiction
 * beside another finding at the same event says nothing more, and not every verifier looks for it.
 */
function firstIssues(issues: readonly Finding[]): string[] {
  const [first] = issues.map(([id]) => id).sort();
  const types = new Set(issues.filter(([id]) => id === first).map(([, type]) => type));
  if (types.size > 1) types.delete('contradiction');
  return [...types].sort().map((type) => `${first} ${type}`);
}

/** What both must decide. What could not be checked counts if nothing is wrong. */
function decision(code: number, issues: readonly Finding[], incomplete: readonly string[]) {
  return { code, issues: firstIssues(issues), incomplete: code === 1 ? [] : [...new Set(incomplete)].sort() };
}

/** What `ledger-trust verify` decides. */
async function ours({ file, keys, authority }: Files) {
  const named = [...keys.flatMap((key) => ['--keys', key]), ...(authority === null ? [] : ['--authority', authority])];
  const { code, out } = await runHere(['verify', file, '--json', ...named]);
  if (code === 66) return decision(code, [], []);
  // A checkpoint that is refused ends `verify` before it looks at the events.
  if (out === '') return decision(code, [['', 'refused_checkpoint']], []);
  type Shown = { readonly event_id: string; readonly type: string };
  const { issues, incomplete } = JSON.parse(out) as Record<'issues' | 'incomplete', readonly Shown[]>;
  const found = issues.map(({ event_id, type }) => [event_id, type] as const);
  return decision(
    code,
    found,
    incomplete.map(({ type }) => type),
  );
}

function theirs(found: readonly Finding[]) {
  if (found[0]?.[1] === 'unreadable') return decision(66, [], []);
  const isOpen = ([, type]: Finding) => type.startsWith('? ');
  const issues = found.filter((finding) => !isOpen(finding));
  const open = found.filter(isOpen).map(([, type]) => type.slice(2));
  return decision(issues.length > 0 ? 1 : open.length > 0 ? 2 : 0, issues, open);
}

/** Both verifiers look at the cases. Returns the exit codes of `ledger-trust verify` once both decide the same. */
export async function sameDecisions(all: readonly Case[]): Promise<number[]> {
  const files = filesOf(all);
  const found = await findings(files);
  const differing: unknown[] = [];
  const codes: number[] = [];
  for (const [index, one] of files.entries()) {
    const [expected, given] = [await ours(one), theirs(found[index] ?? [])];
    codes.push(expected.code);
    if (!isDeepStrictEqual(given, expected)) differing.push({ name: all[index]?.name, expected, given });
  }
  expect(differing).toEqual([]);
  return codes;
}
