import { describe, expect, it } from 'vitest';
import { answerFromJson } from '../../../src/client/call/answer-decoding.ts';
import type { Caller } from '../../../src/client/call/call.ts';
import { createEventReading } from '../../../src/client/event-reading.ts';
import { ListLedgerEventsResponseSchema } from '../../../src/gen/svc/v1/ledgers_pb.ts';
import { against, answer } from '../../support/answering-service.ts';

describe('lists of events', () => {
  const event = (seq: number) => ({
    id: `e${seq}`,
    ledger_id: 'l',
    seq,
    event_type: 'A',
    actor_type: 'service',
    payload: {},
    hash: 'h',
    content_hash: 'c',
    created_at: 't',
  });
  const page = (seqs: number[], cursor?: string, issues: object[] = []) => ({
    ledger_id: 'l',
    count: seqs.length,
    integrity: { verified: issues.length === 0, issues },
    events: seqs.map(event),
    next_cursor: cursor,
  });
  const broken = [{ event_id: 'e2', type: 'hash_mismatch', detail: 'x' }];
  const read = async (source: AsyncIterable<{ readonly seq: number }>) => {
    const seqs: number[] = [];
    for await (const { seq } of source) seqs.push(seq);
    return seqs;
  };

  it('are read page by page to their end, with the same filter', async () => {
    const { client, seen } = await against((_, response, count) =>
      answer(response, 200, [page([0, 1], 'c1'), page([], 'c2'), page([2])][count - 1]),
    );
    expect(await read(client.ledgerEvents('l', { eventType: 'A', limit: 2 }))).toEqual([0, 1, 2]);
    expect(seen.map(({ url }) => url.replace('/v1/ledgers/l/events?', ''))).toEqual([
      'limit=2&event_type=A',
      'limit=2&cursor=c1&event_type=A',
      'limit=2&cursor=c2&event_type=A',
    ]);
  });

  it('are not read further than they are consumed', async () => {
    const { client, seen } = await against((_, response, count) => answer(response, 200, page([count], `c${count}`)));
    for await (const { seq } of client.ledgerEvents('l')) if (seq === 2) break;
    expect(seen).toHaveLength(2);
  });

  it('end with an error before a page with integrity issues', async () => {
    const { client } = await against((_, response, count) =>
      answer(response, 200, count === 1 ? page([1], 'c') : page([2], undefined, broken)),
    );
    const got: number[] = [];
    const reading = async () => {
      for await (const { seq } of client.ledgerEvents('l')) got.push(seq);
    };
    await expect(reading()).rejects.toMatchObject({
      code: 'integrity_failed',
      details: { issues: [{ eventId: 'e2' }] },
    });
    expect(got).toEqual([1]);
  });

  it('continue if the caller handles the issues', async () => {
    const { client } = await against((_, response) => answer(response, 200, page([2], undefined, broken)));
    const issues: unknown[] = [];
    expect(await read(client.ledgerEvents('l', {}, { onIssues: (found) => issues.push(...found) }))).toEqual([2]);
    expect(issues).toHaveLength(1);
  });

  describe('end with a sentence if', () => {
    const endless: [string, (count: number) => object, number][] = [
      ['the same page comes for ever', () => page([1], 'same'), 2],
      ['the same cursor comes without events', () => page([], 'same'), 2],
      ['cursors go round without events', (count) => page([], `c${count % 3}`), 4],
      ['new cursors lead to the same events', (count) => page([1, 2], `c${count}`), 2],
      ['new cursors lead back', (count) => page([10 - count], `c${count}`), 2],
      ['new cursors lead nowhere', (count) => page(count === 1 ? [1] : [], `c${count}`), 10_001],
      ['new cursors lead to damaged events', (count) => page([2], `c${count}`, broken), 10_001],
    ];
    it.each(endless)('%s', async (_, pageOf, calls) => {
      let count = 0;
      const reading = createEventReading({
        call: async () => {
          count += 1;
          return answerFromJson(ListLedgerEventsResponseSchema, pageOf(count));
        },
      } as unknown as Caller);
      const error = await read(reading.ledgerEvents('l', {}, { onIssues: () => {} })).catch((thrown) => thrown);
      expect(error).toMatchObject({ code: 'invalid_answer' });
      expect(error.message).toMatch(
        /^The service does not come to the end of the list: .*Read it again from its start/,
      );
      expect(count).toBe(calls);
    });

    it('the order is wrong, but not if a filter finds nothing for long', async () => {
      const { client } = await against((_, response, count) =>
        answer(response, 200, count < 50 ? page([], `c${count}`) : page([9, 8], count < 51 ? 'd' : undefined)),
      );
      await expect(read(client.ledgerEvents('l', { order: 'desc' }))).rejects.toThrow('not behind those before');
      const down = await against((_, response, count) =>
        answer(response, 200, [page([9, 8], 'a'), page([], 'b'), page([7])][count - 1]),
      );
      expect(await read(down.client.ledgerEvents('l', { order: 'desc' }))).toEqual([9, 8, 7]);
    });
  });
});
