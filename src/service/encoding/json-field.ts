import { type DescField, type DescMessage, getOption } from '@bufbuild/protobuf';
import { exactly_one, type JsonRule, json, not_empty } from '../../gen/svc/v1/options_pb.ts';

const rules = new Map<DescField, JsonRule>();

/** Returns the option `svc.v1.json` of a field. Cached, because reading an option parses its bytes. */
export function jsonRule(field: DescField): JsonRule {
  let rule = rules.get(field);
  if (!rule) {
    rule = getOption(field, json);
    rules.set(field, rule);
  }
  return rule;
}

/** Returns the names of the fields of which a caller gives exactly one; none for most requests. */
export function exactlyOneOf(message: DescMessage): readonly string[] {
  return getOption(message, exactly_one);
}

/** Whether a request needs at least one field in its body. */
export function needsSomeField(message: DescMessage): boolean {
  return getOption(message, not_empty);
}

/** Whether the field tells absent from its default. In JSON null then means absent. */
export function isOptional(field: DescField): boolean {
  return field.proto.proto3Optional;
}

/** Makes the error for a kind of field that REST does not support. It is a mistake in the descriptors. */
export function noRestForm(field: DescField): Error {
  return new Error(`${field.parent.typeName}.${field.name}: REST has no form for this kind of field`);
}
