import { type DescFile, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { Server } from '@grpc/grpc-js';

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0];

import { ReflectionService } from '@grpc/reflection';
import type { Endpoint } from '../endpoints/endpoint.ts';

/** Serves gRPC reflection (v1 and v1alpha) over the very descriptors that the endpoints are made of. */
export function addReflection(server: Server, endpoints: Iterable<Endpoint>): void {
  const files = new Map<string, DescFile>();
  const services = new Set<string>();
  const collect = (file: DescFile): void => {
    if (files.has(file.proto.name)) return;
    files.set(file.proto.name, file);
    file.dependencies.forEach(collect);
  };
  for (const { method } of endpoints) {
    services.add(method.parent.typeName);
    collect(method.parent.file);
  }
  const fileDescriptorProtos = [...files.values()].map((file) =>
    Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto)),
  );
  // Of a package that proto-loader would have made, the service looks at these bytes alone.
  const loaded = { api: { fileDescriptorProtos } } as unknown as PackageDefinition;
  new ReflectionService(loaded, { services: [...services] }).addToServer(server);
}
