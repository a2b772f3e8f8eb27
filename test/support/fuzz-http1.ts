import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { SeededRandom } from '../simulation/random.ts';

/** Well-formed requests and known troublemakers, from which cases are made. */
const corpus = [
  'GET /health HTTP/1.1\r\nHost: a\r\n\r\n',
  'HEAD /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n',
  'POST /v1/actors HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}',
  'POST /v1/actors HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
  'POST /v1/actors HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nTrailer: x\r\n\r\n',
  'POST /v1/actors HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}',
  'POST /v1/actors HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}',
  'POST /svc.v1.HealthService/GetHealth HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}',
  'POST /svc.v1.HealthService/GetHealth HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: 5\r\n\r\n\0\0\0\0\0',
  'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET * HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET *%ff HTTP/1.1\r\nHost: a\r\n\r\n',
  'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n',
  'GET http://a/health HTTP/1.1\r\nHost: b\r\n\r\n',
  'GET /health HTTP/1.0\r\n\r\n',
  'GET /health HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  'DELETE /v1/%2e%2e/%00 HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\nCookie: c=d\r\n\r\n',
];

/** Pieces that break requests where they are put in. */
const splinters = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  ':',
  '\r\n\r\n',
  '\xff',
  '%',
  '0\r\n\r\n',
  'Content-Length: 9\r\n',
  'fffffffff\r\n',
];

/** One case: what is sent, in so many pieces. At most some 100 kB. */
export function caseOf(random: SeededRandom): Buffer[] {
  const below = (max: number): number => random.between(0, max - 1);
  let text = '';
  for (let left = random.between(1, random.chance(0.1) ? 80 : 4); left > 0; left -= 1) text += random.pick(corpus);
  for (let left = below(4); left > 0; left -= 1) {
    const at = below(text.length);
    const kind = below(5);
    if (kind === 0) text = text.slice(0, at) + random.pick(splinters) + text.slice(at);
    else if (kind === 1) text = text.slice(0, at) + text.slice(at + 1 + below(8));
    else if (kind === 2) text = text.slice(0, at) + String.fromCharCode(below(256)) + text.slice(at + 1);
    else if (kind === 3) text = text.slice(0, at) + text.slice(at, at + below(40)).repeat(below(50)) + text.slice(at);
    else text = text.slice(0, at);
  }
  const bytes = Buffer.from(text.slice(0, 100_000), 'latin1');
  const cut = random.chance(0.5) ? bytes.length : below(bytes.length);
  return [bytes.subarray(0, cut), bytes.subarray(cut)].filter((piece) => piece.length > 0);
}

/** How a case ended: what came back, and whether the service ended the connection. */
interface CaseEnd {
  readonly answer: string;
  readonly closed: boolean;
}

interface FuzzCase {
  readonly pieces: readonly Buffer[];
  /** The client ends its side behind them. */
  readonly ends: boolean;
  readonly silentMs: number;
}

/** Sends a case and reads until the service closes the connection or is silent for `silentMs`. */
export function sendCase(
  to: { readonly port: number; readonly tls: boolean },
  { pieces, ends, silentMs }: FuzzCase,
): Promise<CaseEnd> {
  return new Promise((resolve) => {
    const options = { port: to.port, host: '127.0.0.1', allowHalfOpen: true };
    const socket = to.tls ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options);
    socket.on('error', () => {});
    let answer = '';
    const end = (closed: boolean): void => {
      clearTimeout(silent);
      socket.destroy();
      resolve({ answer, closed });
    };
    const silent = setTimeout(() => end(false), silentMs);
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
      silent.refresh();
    });
    socket.on('end', () => end(true)).on('close', () => end(true));
    for (const piece of pieces) socket.write(piece);
    if (ends) socket.end();
  });
}
