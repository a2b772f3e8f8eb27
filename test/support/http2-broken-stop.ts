import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { secondHeaders } from './attacks/broken-headers.ts';
import { callHeaders, endHeaders, frame, frameType, preface, settings, windowUpdate } from './attacks/http2-frames.ts';
import { bearer, startListeningNode } from './listening-node.ts';
import { openSocket } from './raw-http.ts';

/**
 * A program: `node http2-broken-stop.ts stop|exit`. Clients of a gRPC port begin headers of a stream that do not end
 * and read no answer, until the node ends their connections because too many answers wait. Then the port closes and the
 * process ends with 0, or the process ends with 1 while the port is open.
 */
const event = { hash: 'x'.repeat(3 * 1024 * 1024) };
const node = await startListeningNode({
  handlers: {
    'MasterService.AppendEvents': async function* () {
      yield { clientIndex: 0n, outcome: { case: 'appended', value: { replayed: false, event } } };
    },
  },
});
const call = callHeaders('/svc.v1.MasterService/AppendEvents', bearer);
const calls = Array.from({ length: 14 }, (_, at) => frame(frameType.headers, endHeaders, 2 * at + 1, call));
const window = 2 ** 31 - 1;
const begun = [preface, settings({ 4: window }), frame(frameType.settings, 1, 0), windowUpdate(0, window - 65_535)];
for (let at = 0; at < 4; at += 1) {
  const socket = openSocket(node.grpc.port);
  await once(socket, 'connect');
  socket.pause().write(Buffer.concat([...begun, ...calls, secondHeaders(0)]));
  await delay(250);
}
await delay(250);
if (process.argv[2] === 'exit') process.exit(1);
await node[Symbol.asyncDispose]();
process.exit(0);
