import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import {
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from '../../../../src/gen/grpc/reflection/v1/reflection_pb.ts';
import { reflectionPath } from '../../../../src/rpc/connect/reflection.ts';
import { apiServices } from '../../../../src/rpc/endpoints/routes.ts';
import { listeningNodeForTests } from '../../../support/listening-node.ts';

const node = await listeningNodeForTests({ grpc: false, handlers: {} });

type Asked = MessageInitShape<typeof ServerReflectionRequestSchema>['messageRequest'];

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Sends all requests on one stream, and returns the answers. */
async function reflect(contentType: string, asked: readonly Asked[]): Promise<ServerReflectionResponse[]> {
  const requests = asked.map((messageRequest) =>
    framed(toBinary(ServerReflectionRequestSchema, create(ServerReflectionRequestSchema, { messageRequest }))),
  );
  const headers = { 'content-type': contentType, 'connect-protocol-version': '1' };
  const answer = await fetch(`${node.base}${reflectionPath}`, {
    method: 'POST',
    headers,
    body: Buffer.concat(requests),
  });
  expect([answer.status, answer.headers.get('x-request-id')]).toEqual([200, expect.any(String)]);
  const bytes = Buffer.from(await answer.arrayBuffer());
  const answers: ServerReflectionResponse[] = [];
  for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt32BE(at + 1)) {
    // Flags other than 0 mark the end of the stream.
    if (bytes[at] !== 0) continue;
    const message = bytes.subarray(at + 5, at + 5 + bytes.readUInt32BE(at + 1));
    answers.push(fromBinary(ServerReflectionResponseSchema, message));
  }
  return answers;
}

function filesIn({ messageResponse }: ServerReflectionResponse): FileDescriptorProto[] {
  if (messageResponse.case !== 'fileDescriptorResponse') throw new Error(`No file: ${messageResponse.case}`);
  return messageResponse.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
}

const bySymbol = (value: string): Asked => ({ case: 'fileContainingSymbol', value });

test.each(['application/connect+proto', 'application/grpc-web+proto'])(
  '%s: every listed service has its file',
  async (type) => {
    const [listed] = await reflect(type, [{ case: 'listServices', value: '' }]);
    if (listed?.messageResponse.case !== 'listServicesResponse') throw new Error('No list');
    const names = listed.messageResponse.value.service.map(({ name }) => name);
    const standard = ['grpc.health.v1.Health', 'grpc.reflection.v1.ServerReflection'];
    expect(names).toEqual(expect.arrayContaining([...apiServices.map(({ typeName }) => typeName), ...standard]));
    const answers = await reflect(type, names.map(bySymbol));
    expect(answers.length).toBe(names.length);
    answers.forEach((answer, at) => {
      const services = filesIn(answer).flatMap((file) => file.service.map(({ name }) => `${file.package}.${name}`));
      expect(services).toContain(names[at]);
    });
  },
);

test('the details of errors can be looked up', async () => {
  const types = ['google.rpc.ErrorInfo', 'google.rpc.RetryInfo', 'google.rpc.BadRequest'];
  const answers = await reflect('application/connect+proto', types.map(bySymbol));
  for (const answer of answers)
    expect(filesIn(answer).map(({ name }) => name)).toContain('google/rpc/error_details.proto');
});

test('files come with their comments', async () => {
  const [answer] = await reflect('application/connect+proto', [bySymbol('svc.v1.LedgerService')]);
  if (answer === undefined) throw new Error('No answer');
  const file = filesIn(answer).find(({ name }) => name === 'svc/v1/ledgers.proto');
  const comments = file?.sourceCodeInfo?.location.map(({ leadingComments }) => leadingComments).join('\n');
  expect(comments).toContain('Opens an ORDER ledger between a buyer and a supplier');
});

test('a request that is too large is refused', async () => {
  const headers = { 'content-type': 'application/connect+proto', 'connect-protocol-version': '1' };
  const body = framed(Buffer.alloc(100_000));
  const answer = await fetch(`${node.base}${reflectionPath}`, { method: 'POST', headers, body });
  expect(await answer.text()).toContain('resource_exhausted');
});
