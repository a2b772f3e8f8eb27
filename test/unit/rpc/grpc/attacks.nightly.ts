import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { attackerOf } from '../../../support/attacks/grpc-connections.ts';
import {
  callHeaders,
  data,
  endHeaders,
  frame,
  frameType,
  grpcMessage,
  preface,
  settings,
} from '../../../support/attacks/http2-frames.ts';
import { bearer, startListeningNode } from '../../../support/listening-node.ts';

// What takes the gRPC port more than seconds, by the port as it is.

vi.setConfig({ testTimeout: 120_000 });

const stuckCalls = 900;

/** Whether the kernel has an established connection from this port to the node, on the node's side. */
function isOpenTo(port: number): boolean {
  const from = `:${port.toString(16).toUpperCase().padStart(4, '0')} 01 `;
  return readFileSync('/proc/self/net/tcp', 'latin1').includes(from);
}

test('calls that were refused on a socket that is not read end with it after 30 s', async () => {
  const stuck = Promise.withResolvers<void>();
  let begun = 0;
  let thrown = 0;
  await using node = await startListeningNode({
    handlers: {
      'MasterService.AppendEvent': async () => {
        begun += 1;
        if (begun <= stuckCalls) await stuck.promise;
        thrown += 1;
        throw new LedgerError('invalid_argument', 'x'.repeat(1_500), { expected: 'y'.repeat(10_000) });
      },
    },
  });
  const over = new AbortController();
  const attacker = await attackerOf({ grpc: node.grpcAddress }, over.signal, { isDeaf: true });
  // No table of headers: each error is sent with all its bytes.
  await attacker.send(settings({ 1: 0 }));
  const headers = callHeaders('/svc.v1.MasterService/AppendEvent', bearer);
  const call = async (): Promise<void> => {
    const id = attacker.nextStream();
    const whole = [frame(frameType.headers, endHeaders, id, headers), data(id, grpcMessage(Buffer.alloc(0)), true)];
    await attacker.send(Buffer.concat(whole));
  };
  for (let calls = 0; calls < stuckCalls; calls += 1) await call();
  await expect.poll(() => begun, { timeout: 10_000 }).toBe(stuckCalls);
  // Errors fill what the kernel keeps for the socket, until the node has to wait and reads no more of it.
  for (let isTaken = true; isTaken; ) {
    const before = thrown;
    for (let calls = 0; calls < 20; calls += 1) await call();
    for (let turn = 0; turn < 100 && thrown < before + 20; turn += 1) await delay(10);
    isTaken = thrown === before + 20;
  }
  stuck.resolve();
  await expect.poll(() => node.pipeline.running.size).toBe(0);
  const { localPort = 0 } = attacker.socket;
  expect(isOpenTo(localPort)).toBe(true);
  const heldBytes = () => node.memory.heldBytes('request');
  expect(heldBytes()).toBeGreaterThanOrEqual(stuckCalls * limits.grpcCallBytes);
  // A ping without an answer would end the connection only 80 s after its start.
  await expect.poll(heldBytes, { timeout: limits.grpcAnswerTimeoutMs + 5_000, interval: 100 }).toBe(0);
  // Without reading the socket: once it is read, what was written last ends, and Node closes the connection by itself.
  await expect.poll(() => isOpenTo(localPort), { timeout: limits.grpcEndedSessionMs + 5_000 }).toBe(false);
  over.abort();
});

test('a connection whose preface does not come to its end is ended by a ping that it does not answer', async () => {
  await using node = await startListeningNode({ handlers: {} });
  const begun = performance.now();
  const sockets = [Buffer.alloc(0), preface.subarray(0, 10), preface].map((beginning) => {
    const socket = connect(node.grpc.port, '127.0.0.1', () => socket.write(beginning));
    return socket.on('error', () => {}).resume();
  });
  await Promise.all(sockets.map((socket) => once(socket, 'close')));
  const ms = performance.now() - begun;
  expect(ms).toBeLessThan(limits.grpcKeepaliveMs + limits.grpcKeepaliveTimeoutMs + 5_000);
});
