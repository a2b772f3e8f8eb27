import { expect, it } from 'vitest';
import { type Event, verifyEvents } from '../../../../src/client/index.ts';
import { ISSUES_MAX } from '../../../../src/client/verify/verifying.ts';
import { heldBytes } from '../../../support/held-bytes.ts';
import { at, verify, whole } from '../../../support/vector-chain.ts';

const mib = 1024 * 1024;

/** As many events as that, each of them made only when it is taken. */
async function* repeated(count: number, make: (index: number) => Event): AsyncIterable<Event> {
  for (let index = 0; index < count; index += 1) yield make(index);
}

it('of very many issues the first 10,000 are kept, and all are counted', async () => {
  const events = repeated(ISSUES_MAX + 5, (index) => ({ ...at(4), id: `no id ${index}` }));
  const found = await verifyEvents(events, { ...whole, mustContain: [at(4).hash] });
  const { verdict, issues, issueCount, checked } = found;
  expect(verdict).toBe('invalid');
  expect(checked.events).toBe(ISSUES_MAX + 5);
  expect(issueCount).toBe(ISSUES_MAX + 6);
  expect(issues).toHaveLength(ISSUES_MAX + 1);
  expect(issues[ISSUES_MAX - 1]).toMatchObject({ eventId: `no id ${ISSUES_MAX - 1}`, type: 'malformed_event' });
  // What is wrong with the list as a whole is not left out.
  expect(issues.at(-1)).toMatchObject({ type: 'missing_event' });
});

it('few issues are kept and counted', async () => {
  const found = await verify([{ ...at(4), id: 'no id' }]);
  expect(found.issueCount).toBe(found.issues.length);
  expect(found.issues).toMatchObject([{ eventId: 'no id', type: 'malformed_event' }]);
});

it('issues of events with very long ids and names are short, and do not keep these in memory', async () => {
  const long = (index: number) => `${index}${'x'.repeat(mib)}`;
  const make = (index: number): Event => {
    const name = long(index);
    if (index % 2 === 0) return { ...at(4), id: name };
    const granted = { ...at(6), seq: index, payload: JSON.parse(JSON.stringify({ ...at(6).payload, [name]: 0 })) };
    return { ...granted, actorSigPayload: {} };
  };
  const before = await heldBytes();
  const { issues } = await verifyEvents(repeated(24, make), { ...whole, kind: 'segment' });
  const held = (await heldBytes()) - before;
  expect(issues.length).toBeGreaterThan(24);
  expect(JSON.stringify(issues).length).toBeLessThan(100_000);
  expect(held).toBeLessThan(8 * mib);
});
