import { type DescField, getOption } from '@bufbuild/protobuf';
import { json } from '../../gen/svc/v1/options_pb.ts';

const known = new Map<DescField, boolean>();

/**
 * Whether a field is JSON text in the descriptors and a JSON value in the client's types. Cached, because reading an
 * option parses its bytes.
 */
export function isJsonText(field: DescField): boolean {
  let raw = known.get(field);
  if (raw === undefined) {
    raw = getOption(field, json).raw;
    known.set(field, raw);
  }
  return raw;
}
