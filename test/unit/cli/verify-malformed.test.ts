import { createServer } from 'node:http';
import { afterAll, describe, expect, it } from 'vitest';
import { actor, authority, events, exported } from '../../support/export-of-vectors.ts';
import { onLoopback } from '../../support/loopback.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';

const { file } = newShell();

/** A resolver that answers 400 for what is no actor, as the service does. */
const asked: string[] = [];
const service = createServer((request, response) => {
  const path = decodeURIComponent(request.url ?? '');
  asked.push(path);
  const document = path.includes('svc-authority') ? authority : path.includes(actor.actor_id) ? actor : null;
  response.writeHead(document === null ? 400 : 200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(document ?? { error: { code: 'invalid_argument', message: 'no actor' } }));
});
const resolver = `http://127.0.0.1:${await onLoopback(service)}`;
afterAll(() => void service.close());

describe('an export with an event whose actor_id is no UUID', () => {
  it.each(['not-a-uuid', '', 'x/../../../v1/ledgers?y=1#', 'ABCDEF00-0000-0000-0000-000000000000'])(
    'is invalid, and nobody is asked for the keys of %j',
    async (actorId) => {
      const seal = { authority_sig: events[0]?.authority_sig, authority_key_id: events[0]?.authority_key_id };
      const unsigned = { actor_id: actorId, actor_sig: null, signing_key_id: null, actor_sig_payload: null, ...seal };
      const forged = events.map((event, index) => (index === 4 ? { ...event, ...unsigned } : event));
      const path = file('odd-actor.jsonl', exported(forged, { kind: 'ledger' }));
      const { code, out } = await runHere(['verify', path, '--resolver', resolver]);
      expect([code, out.includes('✗ malformed_event')]).toEqual([1, true]);
      expect(asked.filter((one) => !one.includes('svc-authority') && !one.includes(actor.actor_id))).toEqual([]);
    },
  );
});
