import { type DescFile, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { Endpoint } from '../endpoints/endpoint.ts';

/**
 * The very descriptors that endpoints are made of, with all that they import, each serialized and behind
 * those that it imports: what gRPC reflection tells.
 */
export function descriptorFiles(endpoints: Iterable<Endpoint>): Uint8Array[] {
  const files = new Map<string, DescFile>();
  const collect = (file: DescFile): void => {
    if (files.has(file.proto.name)) return;
    file.dependencies.forEach(collect);
    files.set(file.proto.name, file);
  };
  for (const { method } of endpoints) collect(method.parent.file);
  return [...files.values()].map((file) => toBinary(FileDescriptorProtoSchema, file.proto));
}
