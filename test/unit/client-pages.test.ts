import { describe, expect, it } from 'vitest';
import { against, answer } from '../support/answering-service.ts';

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

  it('are read no further than they are consumed', async () => {
    const { client, seen } = await against((_, response, count) => answer(response, 200, page([count], `c${count}`)));
    for await (const { seq } of client.ledgerEvents('l')) if (seq === 2) break;
    expect(seen).toHaveLength(2);
  });

  it('end with an error where the service reports failures, before their page is handed out', async () => {
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

  it('go on where the caller takes the failures itself', async () => {
    const { client } = await against((_, response) => answer(response, 200, page([2], undefined, broken)));
    const issues: unknown[] = [];
    expect(await read(client.ledgerEvents('l', {}, { onIssues: (found) => issues.push(...found) }))).toEqual([2]);
    expect(issues).toHaveLength(1);
  });

  it('end with an error where the same cursor comes for ever', async () => {
    const { client } = await against((_, response) => answer(response, 200, page([1], 'same')));
    await expect(read(client.ledgerEvents('l'))).rejects.toMatchObject({ code: 'invalid_answer' });
  });
});
