import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type GrpcTarget, onConnections } from '../support/attacks/grpc-connections.ts';
import { run as grpcDetails } from '../support/attacks/grpc-details.ts';
import { floods, run as grpcFloods } from '../support/attacks/grpc-floods.ts';
import { run as grpcHandshakes } from '../support/attacks/grpc-handshakes.ts';
import { run as grpcReflection } from '../support/attacks/grpc-reflection.ts';
import { run as grpcUnfinished } from '../support/attacks/grpc-unfinished.ts';
import { run as grpcUntaken } from '../support/attacks/grpc-untaken.ts';
import { entitiesPage, eventsPage } from '../support/attacks/large-pages.ts';
import { run as pipelining } from '../support/attacks/pipelining.ts';
import type { ReadAttackOptions, ReadStatuses, ReadTarget } from '../support/attacks/read-target.ts';
import { run as readsAbandoned } from '../support/attacks/reads-abandoned.ts';
import { run as readsFiltered } from '../support/attacks/reads-filtered.ts';
import { run as readsLarge } from '../support/attacks/reads-large.ts';
import { run as readsVerified } from '../support/attacks/reads-verified.ts';
import type { Attack as PortAttack } from '../support/attacks/target.ts';
import { run as unreadAnswers } from '../support/attacks/unread-answers.ts';
import { hugeBody, slowHeaders } from '../support/attacks.ts';
import type { Attack, AttackTarget } from './attack.ts';

/** Repeats one round of an attack on so many connections at once until the signal ends. A round returns what it did. */
function repeated(unit: string, round: (target: AttackTarget, signal: AbortSignal) => Promise<number>): Attack {
  return async (target, signal, connections) => {
    let count = 0;
    const one = async (): Promise<void> => {
      while (!signal.aborted) {
        // `count += await …` would add to the count of before the wait, and lose what others added meanwhile.
        const did = await round(target, signal);
        count += did;
        await delay(10);
      }
    };
    await Promise.all(Array.from({ length: connections }, one));
    return { count, unit };
  };
}

/** An attack on the gRPC port that has no credential. */
function onGrpc(
  attack: (target: GrpcTarget, signal: AbortSignal, connections: number) => Promise<number>,
  unit = 'bytes',
): Attack {
  return async (target, signal, connections) => ({ count: await attack(target, signal, connections), unit });
}

/** An attack on the HTTP port. `pageOf`: registers and makes the page that is asked for; without it, no credential. */
function onHttp(attack: PortAttack, pageOf?: typeof eventsPage): Attack {
  return async ({ base, http, grpc }, signal, connections) => {
    const [host = '', httpPort] = http.split(':');
    const ports = { host, httpPort: Number(httpPort), grpcPort: Number(grpc.split(':')[1]) };
    const page = await pageOf?.({ httpUrl: base }, signal);
    const target = page === undefined ? ports : { ...ports, page };
    return { count: await attack(target, signal, connections), unit: 'bytes' };
  };
}

/** An attack by somebody who has registered like anyone may. */
function byReader(
  attack: (target: ReadTarget, signal: AbortSignal, connections: number, options: ReadAttackOptions) => Promise<void>,
): Attack {
  return async ({ base }, signal, connections) => {
    const statuses: ReadStatuses = new Map();
    await attack({ httpUrl: base }, signal, connections, { statuses });
    return { count: [...statuses.values()].reduce((sum, each) => sum + each, 0), unit: 'reads' };
  };
}

const registerHead = 'POST /v1/developer/register HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';

/** Every attack of the soak, by the name that `--attack` takes. */
export const attacks: Readonly<Record<string, Attack>> = {
  // The honest appends alone: what the others are compared with.
  none: async (_target, signal) => {
    await once(signal, 'abort');
    return null;
  },
  'slow headers': repeated('connections', async ({ http }, signal) => {
    const socket = slowHeaders(http);
    let isOpen = false;
    socket.once('connect', () => {
      isOpen = true;
    });
    const end = (): void => void socket.destroy();
    signal.addEventListener('abort', end, { once: true });
    await new Promise((resolve) => socket.once('close', resolve));
    signal.removeEventListener('abort', end);
    return isOpen ? 1 : 0;
  }),
  'bodies without end': repeated('bytes', ({ http }) => hugeBody(http, registerHead, 2 ** 26)),
  'rapid reset': onGrpc((...to) => onConnections(...to, floods['calls that are reset'])),
  'headers without end': onGrpc((...to) => onConnections(...to, floods.CONTINUATION)),
  'grpc floods': onGrpc(grpcFloods),
  'grpc handshakes': onGrpc(grpcHandshakes, 'connections'),
  'grpc reflection': onGrpc(grpcReflection),
  'grpc unfinished': onGrpc(grpcUnfinished),
  'grpc untaken': onGrpc(grpcUntaken),
  'grpc details': async ({ base, grpc }, signal, connections) => {
    const count = await grpcDetails({ grpc, httpUrl: base }, signal, connections);
    return { count, unit: 'errors' };
  },
  pipelining: onHttp(pipelining),
  'pipelining of events': onHttp(pipelining, eventsPage),
  'pipelining of entities': onHttp(pipelining, entitiesPage),
  'unread answers': onHttp(unreadAnswers),
  'reads filtered': byReader(readsFiltered),
  'reads verified': byReader(readsVerified),
  'reads abandoned': byReader(readsAbandoned),
  'reads large': byReader(readsLarge),
};
