import type { DescriptorProto, FileDescriptorProto } from '@bufbuild/protobuf/wkt';
import { descriptorFiles } from '../endpoints/descriptor-image.ts';

/** By full name: `svc.v1.Event`, `svc.v1.Event.seq`, `svc.v1.LedgerService.GetLedger`. */
export type Comments = ReadonlyMap<string, string>;

// Field numbers of google.protobuf.FileDescriptorProto, DescriptorProto and ServiceDescriptorProto.
const FILE_MESSAGES = 4;
const FILE_SERVICES = 6;
const MESSAGE_FIELDS = 2;
const MESSAGE_ONEOFS = 8;
const SERVICE_METHODS = 2;

export function readComments(): Comments {
  const comments = new Map<string, string>();
  for (const file of descriptorFiles()) if (file.package.startsWith('svc.')) addFile(comments, file);
  return comments;
}

function addFile(comments: Map<string, string>, file: FileDescriptorProto): void {
  const byPath = new Map<string, string>();
  for (const location of file.sourceCodeInfo?.location ?? []) {
    if (location.leadingComments) byPath.set(location.path.join('.'), oneParagraph(location.leadingComments));
  }
  const add = (name: string, path: readonly number[]) => {
    const comment = byPath.get(path.join('.'));
    if (comment !== undefined) comments.set(name, comment);
  };
  file.messageType.forEach((message, index) => {
    addMessage(add, `${file.package}.${message.name}`, message, [FILE_MESSAGES, index]);
  });
  file.service.forEach((service, index) => {
    const name = `${file.package}.${service.name}`;
    add(name, [FILE_SERVICES, index]);
    service.method.forEach((method, at) => {
      add(`${name}.${method.name}`, [FILE_SERVICES, index, SERVICE_METHODS, at]);
    });
  });
}

function addMessage(
  add: (name: string, path: readonly number[]) => void,
  name: string,
  message: DescriptorProto,
  path: readonly number[],
): void {
  add(name, path);
  message.field.forEach((field, at) => {
    add(`${name}.${field.name}`, [...path, MESSAGE_FIELDS, at]);
  });
  message.oneofDecl.forEach((oneof, at) => {
    add(`${name}.${oneof.name}`, [...path, MESSAGE_ONEOFS, at]);
  });
}

/** Comments are wrapped for editors. Readers of the documentation wrap themselves. */
function oneParagraph(comment: string): string {
  return comment
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');
}
