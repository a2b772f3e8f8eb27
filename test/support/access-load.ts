import type { Client } from '@grpc/grpc-js';
import { expect } from 'vitest';
import { type AppendEventResponse, MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { callGrpc } from './grpc-client.ts';
import { append, type Master, type Party } from './parties.ts';
import type { Fields } from './parties-rest.ts';
import { appended, sendAll, streamed } from './parties-stream.ts';

export const transports = ['rest', 'unary', 'stream'] as const;
type Transport = (typeof transports)[number];

export interface Answered {
  readonly code: string | null;
  /** seq, id and hash of what was recorded. */
  readonly recorded: readonly [unknown, unknown, unknown] | null;
}
export interface Sent extends Answered {
  readonly actorId: string;
}

type Job = readonly [master: Master, payload: Fields];

async function byRest(actor: Party, [master, payload]: Job): Promise<Answered> {
  const { code, body } = await append(master, actor, 'NOTED', payload);
  return { code, recorded: code === null ? [body.seq, body.event_id, body.hash] : null };
}

async function byUnary(grpc: Client, actor: Party, [master, payload]: Job): Promise<Answered> {
  const { clientIndex: _, signingKeyId, actorSig, ...request } = streamed(master, actor, 0, payload);
  const signed = signingKeyId === undefined ? {} : { 'x-signing-key-id': signingKeyId, 'x-actor-sig': actorSig };
  const headers = { ...actor.bearer, ...signed } as Record<string, string>;
  const { message, info } = await callGrpc(grpc, MasterService.method.appendEvent, request, headers);
  if (message === null) return { code: info?.reason ?? 'none', recorded: null };
  const { seq, eventId, hash } = message as AppendEventResponse;
  return { code: null, recorded: [Number(seq), eventId, hash] };
}

async function byStream(grpc: Client, actor: Party, jobs: readonly Job[]): Promise<Answered[]> {
  const events = jobs.map(([master, payload], n) => streamed(master, actor, n, payload));
  const outcomes = await sendAll(grpc, actor, events);
  expect(outcomes.map(({ index }) => index)).toEqual(events.map((_, n) => n));
  return outcomes.map((outcome) => {
    if (outcome.code !== null) return { code: outcome.code, recorded: null };
    const { event } = appended(outcome);
    return { code: null, recorded: [Number(event?.seq), event?.eventId, event?.hash] };
  });
}

/** An append over one of the transports. */
export async function appendOver(grpc: Client, transport: Transport, actor: Party, job: Job): Promise<Answered> {
  switch (transport) {
    case 'rest':
      return byRest(actor, job);
    case 'unary':
      return byUnary(grpc, actor, job);
    case 'stream': {
      const [answer] = await byStream(grpc, actor, [job]);
      return answer as Answered;
    }
  }
}

/** Sends `each` appends of each actor at once, a third over each transport; `between` runs before each round. */
export function sendAtOnce(
  grpc: Client,
  actors: readonly Party[],
  each: number,
  jobOf: (at: number, n: number) => Job,
  between: (n: number) => void,
): Promise<Sent>[] {
  const sent: Promise<Sent>[] = [];
  const note = async ({ actorId }: Party, answer: Promise<Answered>): Promise<Sent> => ({ actorId, ...(await answer) });
  const rounds = Array.from({ length: each }, (_, n) => n);
  const inStream = rounds.filter((n) => n % 3 === 2);
  for (const [at, actor] of actors.entries()) {
    const outcomes = byStream(
      grpc,
      actor,
      inStream.map((n) => jobOf(at, n)),
    );
    for (const place of inStream.keys())
      sent.push(
        note(
          actor,
          outcomes.then((all) => all[place] as Answered),
        ),
      );
  }
  for (const n of rounds.filter((round) => round % 3 !== 2)) {
    between(n);
    const transport = n % 3 === 0 ? 'rest' : 'unary';
    for (const [at, actor] of actors.entries())
      sent.push(note(actor, appendOver(grpc, transport, actor, jobOf(at, n))));
  }
  return sent;
}
