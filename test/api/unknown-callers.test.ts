import { randomBytes, randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { formatApiKey } from '../../src/domain/keys/api-key.ts';
import { bearerOf, newParty } from '../support/parties.ts';
import { runNode } from '../support/running-node.ts';

/** Of a caller; an address of unknown callers has ten times as much. */
const rate = { RATE_LIMIT_CALL_PER_SECOND: '1', RATE_LIMIT_CALL_BURST: '2' };

const unknown: Readonly<Record<string, () => [path: string, headers: Record<string, string>]>> = {
  'API keys that nobody has': () => {
    const random = randomBytes(32);
    return ['/v1/developer/me', bearerOf(formatApiKey({ environment: 'sandbox', region: null, random }))];
  },
  'ids that no entity has': () => ['/v1/traceledger/master', { 'x-actor-id': randomUUID(), 'x-actor-type': 'device' }],
  'no credential': () => ['/v1/entities?display_name=nobody', {}],
};

test.each(Object.entries(unknown))(
  'calls with %s share the rate of their address, and a known caller goes on',
  async (_, next) => {
    await using node = await runNode({ env: rate });
    const { apiKey } = await newParty(node.base, { keyed: false });
    const statusOf = async (path: string, headers: Record<string, string>): Promise<number> => {
      const answer = await fetch(node.base + path, { headers });
      await answer.arrayBuffer();
      return answer.status;
    };
    expect(await statusOf('/v1/developer/me', bearerOf(apiKey))).toBe(200);
    const statuses: number[] = [];
    for (let at = 0; at < 30; at += 1) statuses.push(await statusOf(...next()));
    expect(statuses.slice(0, 15)).not.toContain(429);
    expect(statuses.at(-1)).toBe(429);
    expect(await statusOf('/v1/developer/me', bearerOf(apiKey))).toBe(200);
  },
);
