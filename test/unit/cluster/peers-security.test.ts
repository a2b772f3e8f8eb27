import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { PeerTls } from '../../../cluster/peers/security.ts';
import { append } from '../../support/commands.ts';
import { failure, nodePort, ownerPort, peersTo } from '../../support/peer-ports.ts';
import { suiteDir } from '../../support/running-node.ts';

describe('the internal port of a node', () => {
  test.each([
    ['another secret', 'a secret of someone else'],
    ['no secret', null],
  ])('runs no command of a caller with %s', async (_, wrong) => {
    const { port, carried } = await ownerPort();
    const { ask } = peersTo(port, { security: { tls: null, secret: wrong } });
    expect(await failure(ask(append()))).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: false });
    expect(carried).toEqual([]);
  });

  const directory = suiteDir();

  test('serves only callers with a certificate of its authority, if nodes have certificates', async () => {
    const [ours, theirs] = [authority(directory, 'ours'), authority(directory, 'theirs')];
    const node = { tls: ours('node-a'), secret: null };
    const { port, log } = await ownerPort({ security: node });
    const known = { tls: ours('node-b'), secret: null };
    expect((await peersTo(port, { security: known }).ask(append())).event.seq).toBe(3);
    // It trusts our authority, and has a certificate of another one.
    const forged = { ...theirs('node-c'), ca: node.tls.ca };
    for (const tls of [forged, theirs('node-c'), null])
      expect(
        await failure(peersTo(port, { security: { tls, secret: 'a guessed secret' } }).ask(append())),
      ).toMatchObject({ name: 'PeerUnreachable' });
    expect(await log()).toHaveLength(4);
  });

  test('also serves metrics and readiness over HTTP/1', async () => {
    const far = await nodePort();
    const base = `http://127.0.0.1:${far.port}`;
    expect(await (await fetch(`${base}/health/ready`)).json()).toEqual({ status: 'ready' });
    expect(await (await fetch(`${base}/metrics`)).text()).toMatch(/process_cpu/);
    expect((await fetch(`${base}/metrics`, { method: 'POST', body: 'x' })).status).toBe(405);
    // One byte at a time: the first bytes decide whether the connection is HTTP/1.
    const socket = connect(far.port, '127.0.0.1');
    let answer = '';
    socket.on('data', (data) => {
      answer += data.toString();
    });
    for (const letter of 'GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n') {
      socket.write(letter);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await new Promise((resolve) => socket.once('close', resolve));
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
  });
});

/** Makes a certificate authority. Returns a function that makes certificates of nodes. */
function authority(directory: string, name: string): (node: string) => PeerTls {
  const at = (file: string) => join(directory, `${name}-${file}`);
  const openssl = (command: string) => execFileSync('openssl', command.split(' '), { stdio: 'pipe' });
  const newKey = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes';
  const [caKey, ca] = [at('ca.key'), at('ca.pem')];
  openssl(`req -x509 ${newKey} -keyout ${caKey} -out ${ca} -days 1 -subj /CN=${name}`);
  return (node) => {
    const [key, request, cert] = ['key', 'csr', 'pem'].map((end) => at(`${node}.${end}`));
    openssl(`req ${newKey} -keyout ${key} -out ${request} -subj /CN=${node}`);
    openssl(`x509 -req -in ${request} -CA ${ca} -CAkey ${caKey} -CAcreateserial -out ${cert} -days 1`);
    return { ca: readFileSync(ca), cert: readFileSync(cert ?? ''), key: readFileSync(key ?? '') };
  };
}
