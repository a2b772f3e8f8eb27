import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { PeerTls } from '../../../cluster/peers/security.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { append } from '../../support/commands.ts';
import { failure, nodePort, openLedgerDirectory, peersTo } from '../../support/peer-ports.ts';

describe('who is no node of the cluster', () => {
  test.each([
    ['another secret', 'a secret of someone else'],
    ['no secret', null],
  ])('%s: nothing is carried out', async (_, wrong) => {
    const carried: Command[] = [];
    const far = await nodePort((command) => {
      carried.push(command);
      return new Promise(() => {});
    });
    const { ask } = peersTo(far.port, { tls: null, secret: wrong });
    expect(await failure(ask(append()))).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: false });
    expect(carried).toEqual([]);
  });

  const directory = mkdtempSync(join(tmpdir(), 'lts-peers-'));
  afterAll(() => rmSync(directory, { recursive: true }));

  test('with certificates: of the same authority it is served; of another, or with none, it is not', async () => {
    const [ours, theirs] = [authority(directory, 'ours'), authority(directory, 'theirs')];
    const node = { tls: ours('node-a'), secret: null };
    const { directory: ledgers, log } = await openLedgerDirectory();
    const far = await nodePort((command) => ledgers.carryOut(command), node);
    expect((await peersTo(far.port, { tls: ours('node-b'), secret: null }).ask(append())).event.seq).toBe(3);
    // Believes our authority, and shows a certificate of another one.
    const forged = { ...theirs('node-c'), ca: node.tls.ca };
    for (const tls of [forged, theirs('node-c'), null])
      expect(await failure(peersTo(far.port, { tls, secret: 'guessed by somebody' }).ask(append()))).toMatchObject({
        name: 'PeerUnreachable',
      });
    expect(await log()).toHaveLength(4);
  });

  test('metrics and readiness are served beside it, on the same port', async () => {
    const far = await nodePort(() => new Promise(() => {}));
    const base = `http://127.0.0.1:${far.port}`;
    expect(await (await fetch(`${base}/health/ready`)).json()).toEqual({ status: 'ready' });
    expect(await (await fetch(`${base}/metrics`)).text()).toMatch(/process_cpu/);
    expect((await fetch(`${base}/metrics`, { method: 'POST', body: 'x' })).status).toBe(405);
    // A byte at a time: what is no peer is HTTP/1.
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

/** A certificate authority of a test, which makes nodes' certificates. */
function authority(directory: string, name: string): (node: string) => PeerTls {
  const at = (file: string) => join(directory, `${name}-${file}`);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    at('ca.key'),
    '-out',
    at('ca.pem'),
    '-days',
    '1',
    '-subj',
    `/CN=${name}`,
  );
  return (node) => {
    const file = (end: string) => at(`${node}.${end}`);
    openssl('req', ...newKey, '-keyout', file('key'), '-out', file('csr'), '-subj', `/CN=${node}`);
    openssl(
      'x509',
      '-req',
      '-in',
      file('csr'),
      '-CA',
      at('ca.pem'),
      '-CAkey',
      at('ca.key'),
      '-CAcreateserial',
      '-out',
      file('pem'),
      '-days',
      '1',
    );
    return { ca: readFileSync(at('ca.pem')), cert: readFileSync(file('pem')), key: readFileSync(file('key')) };
  };
}
