import type { Caller } from '../../src/client/call/call.ts';
import { LedgerTrustError } from '../../src/client/error.ts';
import { createFollowing, type FollowParts } from '../../src/client/follow/follow.ts';
import { type Event, type FollowOptions, type FollowRequest, ProofRefused } from '../../src/client/index.ts';
import { authorityKey, chain, documentOf } from './vector-chain.ts';

export const ledgerId = chain[0]?.ledgerId ?? '';
const sound = { verified: true, issues: [] };
export const messageOf = (event: Event) => ({ kind: 'event', value: { event, integrity: sound } });
export const headOf = ({ seq, hash, masterSeq }: Event) => ({ seq, hash, masterSeq });
export const caughtUpAt = (event: Event) => ({ kind: 'caughtUp', value: { head: headOf(event) } });
export const heartbeatAt = (event: Event, checkpoint: string | null) => ({
  kind: 'heartbeat',
  value: { head: headOf(event), checkpoint },
});
export type Message = ReturnType<typeof messageOf | typeof caughtUpAt | typeof heartbeatAt>;

/** What one stream of the service does: its messages, and then how it ends. null: well. 'silent': not at all. */
export interface Scripted {
  readonly messages: readonly Message[];
  readonly end: LedgerTrustError | null | 'silent';
}

export const lost = () => new LedgerTrustError('connection_lost', 'cut');
export const noProofs: FollowParts['proofs'] = {
  takeNote: () => Promise.reject(new Error('there is none')),
  proveEvent: () => Promise.reject(new ProofRefused('wrong_event', 'there is none')),
  proveRecord: () => Promise.reject(new Error('there is none')),
};

/** A service with scripted streams. `script` gets the place behind which the `count`th stream was opened. */
export function scriptedService(
  script: (after: number, count: number) => Scripted,
  events: readonly Event[] = chain,
  proofs: FollowParts['proofs'] = noProofs,
  failures: { readonly [method: string]: LedgerTrustError } = {},
) {
  const opened: number[] = [];
  const waits: number[] = [];
  const closing = new AbortController();
  const caller: Pick<Caller, 'call' | 'live'> = {
    async call({ name }, request) {
      if (name === 'getAuthority') return { keys: [authorityKey], phase: '2' };
      if (name === 'resolveActor') return { ...documentOf() };
      const failure = failures[name];
      if (failure !== undefined) throw failure;
      // A filtered page may end before its first event: the service examines a bounded number.
      if (request.eventType !== undefined) return { events: [], nextCursor: 'examined', integrity: sound };
      const ofMaster = name === 'listMasterEvents' ? events.filter(({ masterId }) => masterId === request.uuid) : null;
      const list = request.order === 'desc' ? (ofMaster ?? events).toReversed() : (ofMaster ?? events);
      const from = Number(request.fromSeq ?? 0);
      const place = list.filter(({ seq }) => seq >= from);
      const begin = Number(request.cursor ?? request.offset ?? 0);
      const end = begin + Number(request.limit);
      return { events: place.slice(begin, end), nextCursor: end < place.length ? String(end) : null, integrity: sound };
    },
    async *live(_endpoint, request, signal) {
      const after = Number(request.afterSeq ?? request.afterMasterSeq);
      opened.push(after);
      const { messages, end } = script(after, opened.length);
      yield* messages;
      if (end === 'silent')
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      if (end instanceof LedgerTrustError) throw end;
    },
  };
  const clock = {
    monotonicMs: () => 0,
    sleep: async (ms: number) => void waits.push(ms),
    random: () => 1,
  };
  const parts = { caller, proofs, clock, attemptsMax: 3, closing: closing.signal };
  const following = createFollowing(parts as unknown as FollowParts);
  /** Follows to the end. Resolves with the seqs that were handed out, and the code of the error. */
  const follow = async (request: FollowRequest, options: FollowOptions = {}) => {
    const seqs: number[] = [];
    const heads: number[] = [];
    let code: unknown = null;
    let types: unknown = null;
    try {
      const told = { onCaughtUp: ({ seq }: { readonly seq: number }) => void heads.push(seq) };
      for await (const event of following.follow(request, { ...told, ...options })) seqs.push(event.seq);
    } catch (error) {
      if (!(error instanceof LedgerTrustError)) throw error;
      code = error.code;
      types = (error.details.issues as { readonly type: string }[] | undefined)?.map(({ type }) => type);
    }
    return { seqs, heads, code, types };
  };
  return { follow, following, opened, waits, closing };
}

export const behind = (after: number, events = chain) => events.filter(({ seq }) => seq > after).map(messageOf);
export const allSeqs = chain.map(({ seq }) => seq);
export const wholeLedger = { ledgerId, after: -1 };
