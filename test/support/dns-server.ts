import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import type { AddressInfo } from 'node:net';
import ipaddr from 'ipaddr.js';

type DnsType = 'A' | 'AAAA' | 'CNAME';
export interface DnsRecord {
  readonly name: string;
  readonly type: DnsType;
  readonly ttl: number;
  /** An address, or the name that a CNAME leads to. */
  readonly data: string;
}

const typeNumbers: Readonly<Record<DnsType, number>> = { A: 1, CNAME: 5, AAAA: 28 };
const headerBytes = 12;

/** A DNS server on loopback; `answer` gets the name, the type and the number of earlier questions. */
export async function startDnsServer(
  answer: (name: string, type: 'A' | 'AAAA', before: number) => readonly DnsRecord[],
) {
  const socket: Socket = createSocket('udp4');
  const asked = new Map<string, number>();
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const { name, end } = nameAt(query, headerBytes);
    const type = query.readUInt16BE(end) === typeNumbers.AAAA ? 'AAAA' : 'A';
    const key = `${type} ${name}`;
    const before = asked.get(key) ?? 0;
    asked.set(key, before + 1);
    const records = answer(name, type, before);
    const header = Buffer.alloc(headerBytes);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8580, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    const question = query.subarray(headerBytes, end + 4);
    socket.send(Buffer.concat([header, question, ...records.map(recordBytes)]), from.port, from.address);
  });
  await new Promise<void>((resolve) => void socket.bind(0, '127.0.0.1', resolve));
  const { port } = socket.address() as AddressInfo;
  return { server: `127.0.0.1:${port}`, asked: (key: string) => asked.get(key) ?? 0, close: () => socket.close() };
}

function nameAt(message: Buffer, start: number): { readonly name: string; readonly end: number } {
  const labels: string[] = [];
  let at = start;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

function nameBytes(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function recordBytes({ name, type, ttl, data }: DnsRecord): Buffer {
  const content = type === 'CNAME' ? nameBytes(data) : Buffer.from(ipaddr.parse(data).toByteArray());
  const head = Buffer.alloc(10);
  head.writeUInt16BE(typeNumbers[type], 0);
  head.writeUInt16BE(1, 2);
  head.writeUInt32BE(ttl, 4);
  head.writeUInt16BE(content.length, 8);
  return Buffer.concat([nameBytes(name), head, content]);
}
