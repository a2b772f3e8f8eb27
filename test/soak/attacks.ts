import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { run as grpcFloods } from '../support/attacks/grpc-floods.ts';
import { run as grpcHandshakes } from '../support/attacks/grpc-handshakes.ts';
import { run as grpcReflection } from '../support/attacks/grpc-reflection.ts';
import { run as grpcUnfinished } from '../support/attacks/grpc-unfinished.ts';
import { run as grpcUntaken } from '../support/attacks/grpc-untaken.ts';
import { run as pipelining } from '../support/attacks/pipelining.ts';
import { run as readsAbandoned } from '../support/attacks/reads-abandoned.ts';
import { run as readsFiltered } from '../support/attacks/reads-filtered.ts';
import { run as readsLarge } from '../support/attacks/reads-large.ts';
import { run as readsVerified } from '../support/attacks/reads-verified.ts';
import type { Attack as PortAttack } from '../support/attacks/target.ts';
import { run as unreadAnswers } from '../support/attacks/unread-answers.ts';
import { continuationFlood, hugeBody, rapidReset, slowHeaders } from '../support/attacks.ts';
import type { Attack } from './attack.ts';

/** Repeats one round of an attack on so many connections at once until the signal ends. */
function repeated(round: (target: Parameters<Attack>[0], signal: AbortSignal) => Promise<unknown>): Attack {
  return async (target, signal, connections) => {
    const one = async (): Promise<void> => {
      while (!signal.aborted) {
        await round(target, signal).catch(() => {});
        await delay(10);
      }
    };
    await Promise.all(Array.from({ length: connections }, one));
  };
}

/** An attack on the HTTP port that has no credential. */
function onPorts(attack: PortAttack): Attack {
  return ({ http, grpc }, signal, connections) => {
    const [host = '', httpPort] = http.split(':');
    return attack({ host, httpPort: Number(httpPort), grpcPort: Number(grpc.split(':')[1]) }, signal, connections);
  };
}

/** An attack by somebody who has registered like anyone may. */
function byReader(
  attack: (target: { httpUrl: string }, signal: AbortSignal, connections: number) => Promise<void>,
): Attack {
  return ({ base }, signal, connections) => attack({ httpUrl: base }, signal, connections);
}

const registerHead = 'POST /v1/developer/register HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';

/** Every attack of the soak, by the name that `--attack` takes. */
export const attacks: Readonly<Record<string, Attack>> = {
  // The honest appends alone: what the others are compared with.
  none: async (_target, signal) => void (await once(signal, 'abort')),
  'slow headers': repeated(async ({ http }, signal) => {
    const socket = slowHeaders(http);
    await new Promise((resolve) => {
      socket.once('close', resolve);
      signal.addEventListener('abort', resolve, { once: true });
    });
    socket.destroy();
  }),
  'bodies without end': repeated(({ http }) => hugeBody(http, registerHead, 2 ** 26)),
  'rapid reset': repeated(({ grpc }) => rapidReset(grpc, 2_000)),
  'headers without end': repeated(({ grpc }) => continuationFlood(grpc)),
  'grpc floods': grpcFloods,
  'grpc handshakes': grpcHandshakes,
  'grpc reflection': grpcReflection,
  'grpc unfinished': grpcUnfinished,
  'grpc untaken': grpcUntaken,
  pipelining: onPorts(pipelining),
  'unread answers': onPorts(unreadAnswers),
  'reads filtered': byReader(readsFiltered),
  'reads verified': byReader(readsVerified),
  'reads abandoned': byReader(readsAbandoned),
  'reads large': byReader(readsLarge),
};
