import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { refusedHeaders, secondHeaders } from '../support/attacks/broken-headers.ts';
import {
  callHeaders,
  endHeaders,
  endStream,
  frame,
  frameType,
  preface,
  settings,
  windowUpdate,
} from '../support/attacks/http2-frames.ts';
import { type ProcessEnvironment, startNodeProcess } from '../support/node-process.ts';
import { openSocket } from '../support/raw-http.ts';
import { suiteDir } from '../support/running-node.ts';

const dir = suiteDir();
const check = callHeaders('/grpc.health.v1.Health/Check');
/** Headers of a call, a second block of them that does not end the call, and an error of the connection. */
const unended = Buffer.concat([
  frame(frameType.headers, endHeaders, 1, check),
  secondHeaders(endHeaders),
  windowUpdate(0, 0),
]);
/** Calls that have the node allocate, so that V8 collects soon. */
const many = Buffer.concat(
  Array.from({ length: 90 }, (_, at) => frame(frameType.headers, endHeaders | endStream, 2 * at + 1, check)),
);

test.each([
  ['does not end', unended],
  ['must not send', refusedHeaders(check)],
])(
  'headers that a client %s do not end a node',
  async (_what, broken) => {
    await using node = await startNodeProcess({ DATA_DIR: mkdtempSync(`${dir}/`) });
    const port = Number(node.grpcAddress.split(':')[1]);
    const opened = async (): Promise<Socket> => {
      const socket = openSocket(port).resume();
      await once(socket, 'connect');
      socket.write(Buffer.concat([preface, settings(), frame(frameType.settings, 1, 0)]));
      return socket;
    };
    for (let round = 0; round < 20 && node.child.exitCode === null && node.child.signalCode === null; round += 1) {
      const sockets = await Promise.all(Array.from({ length: 14 }, opened));
      await delay(30);
      for (const [at, socket] of sockets.entries()) socket.write(at < 8 ? broken : many);
      await delay(40);
      for (const socket of sockets) socket.destroy();
    }
    expect([node.child.exitCode, node.child.signalCode]).toEqual([null, null]);
    expect((await fetch(`${node.base}/v1/health`)).status).toBe(200);
  },
  60_000,
);

test('a node says at its start if its version of Node cannot be protected from such headers', async () => {
  const hidden =
    'const{getOwnPropertySymbols:all}=Object;Object.getOwnPropertySymbols=(o)=>all(o).filter((s)=>s.description!=="kHandle")';
  const otherNode = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hidden)}` };
  const warnings = async (env: ProcessEnvironment): Promise<number> => {
    await using node = await startNodeProcess({ DATA_DIR: mkdtempSync(`${dir}/`), ...env });
    await node.terminate();
    return node.said().split('any client may end this process').length - 1;
  };
  expect([await warnings({}), await warnings(otherNode)]).toEqual([0, 1]);
});
