import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type AskedCall, expectAnswered } from '../support/attacks/grpc-answered.ts';
import { type GrpcTarget, onConnections } from '../support/attacks/grpc-connections.ts';
import { run as grpcDetails } from '../support/attacks/grpc-details.ts';
import { asked as askedByFloods, floods, run as grpcFloods } from '../support/attacks/grpc-floods.ts';
import { run as grpcHandshakes } from '../support/attacks/grpc-handshakes.ts';
import { asked as askedOfReflection, run as grpcReflection } from '../support/attacks/grpc-reflection.ts';
import { askedWith, run as grpcUnfinished } from '../support/attacks/grpc-unfinished.ts';
import { asked as askedUntaken, run as grpcUntaken } from '../support/attacks/grpc-untaken.ts';
import { run as internalConnections } from '../support/attacks/internal-connections.ts';
import { entitiesPage, eventsPage } from '../support/attacks/large-pages.ts';
import {
  ownLedger,
  type ReadAttackOptions,
  type ReadStatuses,
  type ReadTarget,
} from '../support/attacks/read-target.ts';
import { readsAbandoned, readsFiltered, readsLarge, readsVerified } from '../support/attacks/reads.ts';
import type { Attack as PortAttack } from '../support/attacks/target.ts';
import { pipelining, unreadAnswers } from '../support/attacks/unread-answers.ts';
import { hugeBody, slowHeaders } from '../support/attacks.ts';
import type { Attack, AttackTarget } from './attack.ts';

const registerPath = '/v1/developer/register';

/**
 * Repeats one round of an attack on so many connections at once until the signal ends. A round returns what it did.
 * The HTTP port is asked once before whether it takes registrations.
 */
function repeated(unit: string, round: (target: AttackTarget, signal: AbortSignal) => Promise<number>): Attack {
  return async (target, signal, connections, begun) => {
    const json = { 'content-type': 'application/json' };
    const answer = await fetch(`${target.base}${registerPath}`, { method: 'POST', headers: json, body: '{}', signal });
    await answer.arrayBuffer();
    // Without its fields the request is refused, but by the method.
    if (answer.status !== 200 && answer.status !== 400)
      throw new Error(`${registerPath} was answered with status ${answer.status}`);
    begun();
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

/** An attack on the gRPC port that has no credential. `asked`: calls that it makes, which are answered once before. */
function onGrpc(
  attack: (target: GrpcTarget, signal: AbortSignal, connections: number) => Promise<number>,
  asked: readonly AskedCall[] = [],
  unit = 'bytes',
): Attack {
  return async ({ grpc, certificate }, signal, connections, begun) => {
    const target = { grpc, tls: certificate !== null };
    await expectAnswered(target, asked);
    begun();
    return { count: await attack(target, signal, connections), unit };
  };
}

/** An attack on the HTTP port. `pageOf`: registers and makes the page that is asked for; without it, no credential. */
function onHttp(attack: PortAttack, pageOf?: typeof eventsPage): Attack {
  return async ({ base, http, grpc }, signal, connections, begun) => {
    const [host = '', httpPort] = http.split(':');
    const ports = { host, httpPort: Number(httpPort), grpcPort: Number(grpc.split(':')[1]) };
    const page = await pageOf?.({ httpUrl: base }, signal);
    const target = page === undefined ? ports : { ...ports, page };
    begun();
    return { count: await attack(target, signal, connections), unit: 'bytes' };
  };
}

/**
 * An attack by somebody who has registered like anyone may. Reads with `status` count: refusals cost the node nothing.
 */
function byReader(
  attack: (target: ReadTarget, signal: AbortSignal, connections: number, options: ReadAttackOptions) => Promise<void>,
  status: number,
): Attack {
  return async ({ base }, signal, connections, begun) => {
    const statuses: ReadStatuses = new Map();
    await attack({ httpUrl: base }, signal, connections, { statuses, begun });
    return { count: statuses.get(status) ?? 0, unit: status === 0 ? 'reads broken off' : 'reads answered' };
  };
}

const registerHead = `POST ${registerPath} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`;

/** Those that speak TLS, or whose connections end before they would. */
export const overTls: readonly string[] = [
  'none',
  'rapid reset',
  'headers without end',
  'grpc floods',
  'grpc handshakes',
  'grpc reflection',
  'grpc unfinished',
  'grpc unfinished with keys',
  'grpc untaken',
];

/** Every attack of the soak, by the name that `--attack` takes. */
export const attacks: Readonly<Record<string, Attack>> = {
  // The honest appends alone: what the others are compared with.
  none: async (_target, signal, _connections, begun) => {
    begun();
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
  'silent internal connections': async ({ opsBase }, signal, connections, begun) => {
    begun();
    return { count: await internalConnections(opsBase, signal, connections), unit: 'connections' };
  },
  'rapid reset': onGrpc((...to) => onConnections(...to, floods['calls that are reset']), askedByFloods),
  'headers without end': onGrpc((...to) => onConnections(...to, floods.CONTINUATION), askedByFloods),
  'grpc floods': onGrpc(grpcFloods, askedByFloods),
  'grpc handshakes': onGrpc(grpcHandshakes, [], 'connections'),
  'grpc reflection': onGrpc(grpcReflection, askedOfReflection),
  'grpc unfinished': onGrpc(grpcUnfinished, askedWith({})),
  'grpc unfinished with keys': async (target, signal, connections, begun) => {
    const ledger = await ownLedger({ httpUrl: target.base }, signal, { events: 0, payloadBytes: 0, signed: false });
    const credentials = ledger.apiKeys.map((key) => ({ authorization: `Bearer ${key}` }));
    const unfinished = onGrpc((...to) => grpcUnfinished(...to, credentials), askedWith(credentials[0] ?? {}));
    return unfinished(target, signal, connections, begun);
  },
  'grpc untaken': onGrpc(grpcUntaken, askedUntaken),
  'grpc details': async ({ base, grpc }, signal, connections, begun) => {
    begun();
    const count = await grpcDetails({ grpc, httpUrl: base }, signal, connections);
    return { count, unit: 'errors' };
  },
  pipelining: onHttp(pipelining),
  'pipelining of events': onHttp(pipelining, eventsPage),
  'pipelining of entities': onHttp(pipelining, entitiesPage),
  'unread answers': onHttp(unreadAnswers),
  'reads filtered': byReader(readsFiltered, 200),
  'reads verified': byReader(readsVerified, 200),
  'reads abandoned': byReader(readsAbandoned, 0),
  'reads large': byReader(readsLarge, 200),
};
