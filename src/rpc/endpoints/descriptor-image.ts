import { readFileSync } from 'node:fs';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

/**
 * The descriptors with their comments, which `prepare` writes. Generated code has no comments that a program could
 * read.
 */
const imageUrl = new URL('../../gen/api.binpb', import.meta.url);

/** The files of the API, of gRPC's own services and of error details, each after the files that it imports. */
export function descriptorFiles(): FileDescriptorProto[] {
  return fromBinary(FileDescriptorSetSchema, readFileSync(imageUrl)).file;
}

/** The same, serialized for reflection. Comments of protobuf's own files are left out: every client has them. */
export function serializedDescriptorFiles(): Uint8Array[] {
  return descriptorFiles().map((file) => {
    const isOwn = file.name.startsWith('google/protobuf/');
    return toBinary(FileDescriptorProtoSchema, isOwn ? { ...file, sourceCodeInfo: undefined } : file);
  });
}
