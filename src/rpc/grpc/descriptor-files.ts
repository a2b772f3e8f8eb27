import { type DescFile, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { Endpoint } from '../endpoints/endpoint.ts';

/**
 * Returns the descriptors of all endpoints and everything that they import, serialized, each after the files that it
 * imports. gRPC reflection serves them.
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
