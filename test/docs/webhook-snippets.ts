import { readFileSync } from 'node:fs';
import { standardSignature, webhookKeys } from '../../src/domain/keys/webhook-signature.ts';

const page = readFileSync(new URL('../../docs/webhooks.md', import.meta.url), 'utf8');

/** The code that docs/webhooks.md shows in a language. */
export function snippet(language: 'ts' | 'py' | 'go'): string {
  const code = new RegExp(`<!-- verify: ${language} -->\\n\`\`\`\\w+\\n([\\s\\S]*?)\`\`\``).exec(page)?.[1];
  if (code === undefined) throw new Error(`docs/webhooks.md shows no code in ${language}`);
  return code;
}

/** A request as a receiver gets it, and whether it must be taken for one of the service. */
export interface SignedRequest {
  readonly name: string;
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The raw body, in base64. */
  readonly body: string;
  readonly nowS: number;
  readonly isGenuine: boolean;
}

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const nowS = 1_790_000_000;

function request(
  name: string,
  isGenuine: boolean,
  changed: Partial<Record<'secret' | 'id' | 'bodyId' | 'body' | 'signature' | 'timestamp', string>> = {},
): SignedRequest {
  const id = changed.id ?? '0193a000-0000-7000-8000-000000000001';
  const signed = Buffer.from(JSON.stringify({ event: { id: changed.bodyId ?? id, payload: { text: '¿né?' } } }));
  const timestamp = changed.timestamp ?? String(nowS);
  const signature = standardSignature(webhookKeys(secret), id, Number(timestamp), signed);
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': (changed.signature ?? '@').replace('@', signature),
  };
  const body = Buffer.from(changed.body ?? signed).toString('base64');
  return { name, secret: changed.secret ?? secret, headers, body, nowS, isGenuine };
}

const otherSecret = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const unsigned = `v1,${Buffer.alloc(32).toString('base64')}`;

/** What each snippet must decide. */
export const requests: readonly SignedRequest[] = [
  request('one of the service', true),
  request('with a second signature before its own', true, { signature: `${unsigned} @` }),
  request('four minutes old', true, { timestamp: String(nowS - 240) }),
  request('six minutes old', false, { timestamp: String(nowS - 360) }),
  request('from six minutes ahead', false, { timestamp: String(nowS + 360) }),
  request('with a time that is no number', false, { timestamp: '1e9' }),
  request('with another body', false, { body: '{"event":{"id":"0193a000-0000-7000-8000-000000000001"}}' }),
  request('signed by another secret', false, { secret: otherSecret }),
  request('with a signature of zeros', false, { signature: unsigned }),
  request('with a signature of another version', false, { signature: 'v2,AAAA' }),
  request('without a signature', false, { signature: ' ' }),
  request('with the id of another event in its body', false, { bodyId: '0193a000-0000-7000-8000-000000000002' }),
];
