import { describe, expect, test } from 'vitest';
import { type Projection, scopesOf } from '../../../src/domain/event/projection.ts';
import { injectedFields } from '../../../src/domain/event/service-events.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import { ledgerFoldVersion } from '../../../src/domain/ledger/ledger-state.ts';
import type { Finding } from '../../../src/maintenance/scrub/finding.ts';
import { scrubLedger } from '../../../src/maintenance/scrub/scrub-ledger.ts';
import type { StoreInspection } from '../../../src/store/store-inspection.ts';
import { chainEntries, entriesEndingIn } from '../../support/chain-entries.ts';
import {
  append,
  closeLedger,
  createMaster,
  grant,
  ledgerId,
  masterId,
  openLedger,
  stranger,
} from '../../support/commands.ts';
import { emptyInspection } from '../../support/empty-inspection.ts';
import { MemoryLedgerStore } from '../../support/memory-store/ledger-store.ts';
import { type Chain, chainOf, start, startMs } from '../../support/world.ts';

/** An append with the payload that the service writes. */
function note(chain: Chain, from: Parameters<typeof append>[0] = {}) {
  const [facts, master] = [chain.ledger.facts, chain.masters.get(masterId)?.facts];
  if (facts === null || master === undefined) throw new Error('no master');
  return append({ payload: canonicalJson(injectedFields(facts, master)), ...from });
}

/** An append of a stranger, decided as if it had a grant. */
function strangersNote(chain: Chain): void {
  const { ledger } = chain;
  const grant = { access: 'write', role: 'OPS', expiresAt: null, delegateActorId: stranger };
  chain.ledger = { ...ledger, ledgerGrants: new Map([[stranger, grant as never]]) };
  chain.run(note(chain, { actorId: stranger }));
  chain.ledger = { ...chain.ledger, ledgerGrants: ledger.ledgerGrants };
}

async function typesFound(
  chain: Chain,
  foldVersion = ledgerFoldVersion,
  state: string | null = null,
): Promise<Set<string>> {
  const findings = await findingsOf(chain, foldVersion, state);
  return new Set(findings.map(({ type }) => type));
}

async function findingsOf(
  chain: Chain,
  foldVersion = ledgerFoldVersion,
  state: string | null = null,
  entries = chainEntries(chain.events),
  pending: readonly Projection[] = [],
): Promise<readonly Finding[]> {
  const ledgers = new MemoryLedgerStore(() => startMs);
  await ledgers.append(await ledgers.claim(ledgerId), entries);
  const [, , third] = chain.events;
  if (state !== null && third !== undefined)
    await ledgers.saveSnapshot(ledgerId, { foldVersion, seq: third.seq, hash: third.hash, state });
  const scopeEntries: StoreInspection['scopeEntries'] = async (_, from, to) =>
    chain.events.slice(from, to).flatMap((event) => scopesOf(event).map((scope) => ({ scope, seq: event.seq })));
  const projectedSeq = chain.ledger.seq - (pending.length > 0 ? 1 : 0);
  const newestBatch = async () => ({ projectedSeq, pending });
  const inspection = { ...emptyInspection(), scopeEntries, newestBatch };
  const keys = { document: () => null };
  const expectations = null;
  const parts = { ledgers, inspection, keys, authorityKeys: null, now: () => startMs, finish: null, expectations };
  return (await scrubLedger(parts, ledgerId)).findings;
}

describe('a log with correct hashes, links and seals', () => {
  test('is sound if every event was decided by the rules', async () => {
    const chain = chainOf(openLedger(), createMaster());
    chain.run(note(chain));
    chain.run(closeLedger());
    expect(await typesFound(chain)).toEqual(new Set());
  });

  test.each([
    ['an event of a stranger', 'not_permitted', strangersNote],
    [
      'an event after the ledger was closed',
      'closed',
      (chain: Chain) => {
        chain.run(closeLedger());
        chain.ledger = { ...chain.ledger, closed: false };
        chain.run(note(chain));
      },
    ],
    [
      'an event of the year 2099',
      'dated_ahead',
      (chain: Chain) => void chain.run(note(chain), '2099-01-01T00:00:00.000Z'),
    ],
  ])('is reported with %s', async (_name, type, forge) => {
    const chain = chainOf(openLedger(), createMaster());
    chain.run(note(chain), start);
    forge(chain);
    expect(await typesFound(chain)).toContain(type);
  });

  test('is reported with the seq of each event, however many events follow', async () => {
    const chain = chainOf(openLedger(), createMaster());
    const seqs = [0, 1].map(() => {
      strangersNote(chain);
      return chain.ledger.seq;
    });
    // More than the scrub reads at a time.
    for (let n = 0; n < 1_200; n += 1) chain.run(note(chain));
    const found = (await findingsOf(chain)).filter(({ type }) => type === 'not_permitted');
    expect(found.map(({ seq }) => seq)).toEqual(seqs);
  });

  test.each(['{}', 'null', 'no JSON', '{"permissions":{},"expires_at":"never"}'])(
    'is reported with each of its faults beside a grant whose payload is %s',
    async (payload) => {
      const chain = chainOf(openLedger(), createMaster());
      strangersNote(chain);
      chain.run(grant());
      const seq = chain.ledger.seq;
      const entries = entriesEndingIn(payload, chain.events);
      const stray = { kind: 'scope', scope: 'of nobody' } as const;
      for (const pending of [[], [stray]]) {
        const found = await findingsOf(chain, ledgerFoldVersion, null, entries, pending);
        expect(found).toContainEqual(expect.objectContaining({ seq: seq - 1, type: 'not_permitted' }));
        expect(found).toContainEqual(expect.objectContaining({ seq, type: 'unreadable_row' }));
      }
    },
  );

  test.each(['{}', 'no JSON', 'sealed1 AAAA {}'])('is reported beside a snapshot with %s', async (state) => {
    const chain = chainOf(openLedger(), createMaster());
    expect(await typesFound(chain, ledgerFoldVersion, state)).toEqual(new Set(['wrong_snapshot']));
    // Of another fold nothing can be said, and no node uses it.
    expect(await typesFound(chain, ledgerFoldVersion + 1, state)).toEqual(new Set());
  });
});
