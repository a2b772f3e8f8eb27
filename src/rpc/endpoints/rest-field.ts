import { type DescField, getOption } from '@bufbuild/protobuf';
import { type JsonRule, json } from '../../gen/svc/v1/options_pb.ts';

const rules = new Map<DescField, JsonRule>();

/** The option `svc.v1.json` of a field. Reading an option parses its bytes, so it is done once a field. */
export function jsonRule(field: DescField): JsonRule {
  let rule = rules.get(field);
  if (!rule) {
    rule = getOption(field, json);
    rules.set(field, rule);
  }
  return rule;
}

/** A field that tells absent from its default: null stands for absent in JSON. */
export function isOptional(field: DescField): boolean {
  return field.proto.proto3Optional;
}

/** A mistake in the descriptors: a kind of field that the REST transport does not need and so does not have. */
export function noRestForm(field: DescField): Error {
  return new Error(`${field.parent.typeName}.${field.name}: REST has no form for this kind of field`);
}
