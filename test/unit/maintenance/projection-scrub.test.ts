import { expect, test } from 'vitest';
import { names, seqOrder } from '../../../src/domain/event/projection.ts';
import type { Finding } from '../../../src/maintenance/scrub/finding.ts';
import { ProjectionScrub } from '../../../src/maintenance/scrub/projection-scrub.ts';
import type { StoredCommandKey } from '../../../src/store/store-inspection.ts';
import { chainEntries } from '../../support/chain-entries.ts';
import { closeLedger, createMaster, delegate, grant, ledgerId, openLedger, uuid } from '../../support/commands.ts';
import { emptyInspection } from '../../support/empty-inspection.ts';
import { emptyLedgerData, type MemoryLedgerData } from '../../support/memory-store/ledger-data.ts';
import { MemoryLedgerStore } from '../../support/memory-store/ledger-store.ts';
import { chainOf, startMs } from '../../support/world.ts';

const { events } = chainOf(
  openLedger(),
  createMaster(),
  grant({ scope: 'ledger' }),
  grant({ scope: 'ledger', linkId: uuid(0xcd) }),
  closeLedger(),
);
/** The seq of the first grant. The ledger grows behind it. */
const readUpTo = events.length - 3;
const grantCell = names.grant('ledger', ledgerId, delegate);
const links = names.links('ledger', ledgerId);

/** What a scrub finds that has read the ledger up to the first grant. `added` has come since then. */
async function found(
  added: (data: MemoryLedgerData) => void,
  length = events.length,
  keys: readonly StoredCommandKey[] = [],
): Promise<string[]> {
  const data = emptyLedgerData();
  const ledgers = new MemoryLedgerStore(() => startMs, data);
  await ledgers.append(await ledgers.claim(ledgerId), chainEntries(events.slice(0, length)));
  added(data);
  const inspection = {
    ...emptyInspection(),
    commandKeys: async function* () {
      yield* keys;
    },
  };
  const findings: Finding[] = [];
  const scrub = new ProjectionScrub({
    ...{ ledgerId, ledgers, inspection, headSeq: readUpTo, projectedSeq: readUpTo, nowMs: startMs },
    ...{ expectations: null, missing: null },
    found: (finding) => void findings.push(finding),
  });
  await scrub.take(events.slice(0, readUpTo + 1), null, 0, readUpTo + 1);
  await scrub.finish();
  const ofScopes = ({ type }: Finding) => type === 'projection_missing';
  return findings.filter((finding) => !ofScopes(finding)).map(({ seq, type, detail }) => `${seq} ${type} ${detail}`);
}

const keyOf = (seq: number): StoredCommandKey => ({ id: 'asked', seq, fingerprint: 'asks' });

test('what events have written that came meanwhile is no finding', async () => {
  expect(await found(() => {}, events.length, [keyOf(events.length - 1)])).toEqual([]);
});

test('what says that it is from an event after the end of the ledger is a finding', async () => {
  const version = 1_000;
  const setCell = (key: string) => (data: MemoryLedgerData) =>
    void data.cells.set(key, { version, value: data.cells.get(key)?.value ?? '"now"' });
  for (const length of [readUpTo + 1, events.length]) {
    expect(await found(setCell(grantCell), length)).toEqual([
      `1000 projection_wrong ${grantCell} says that it is from an event that does not change it`,
    ]);
    const closed = names.ledgerClosed(ledgerId);
    expect(await found(setCell(closed), length)).toEqual([`1000 projection_extra ${closed} follows from no event`]);
    const addLine = (data: MemoryLedgerData) => void data.lines.get(links)?.set(seqOrder(version), '{}');
    expect(await found(addLine, length)).toEqual([`null projection_extra a line of ${links} follows from no event`]);
    expect(await found(() => {}, length, [keyOf(version)])).toEqual([
      '1000 projection_extra the command key asked is of no event',
    ]);
  }
});
