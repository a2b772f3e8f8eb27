/** What a transport makes of an answer. */
type Form = 'server-sent event' | 'message' | 'protobuf';

interface Encodings {
  readonly encoded: () => void;
  readonly byForm: Map<Form, unknown>;
}

const shared = new WeakMap<object, Encodings>();

/** Marks an answer as one that many calls of one method send. `encoded` is called each time a transport encodes it. */
export function shareAnswer<T extends object>(answer: T, encoded: () => void): T {
  shared.set(answer, { encoded, byForm: new Map() });
  return answer;
}

/** Returns what `encode` makes of an answer. A shared answer is encoded once for each form. */
export function encodedOnce<T>(answer: object, form: Form, encode: () => T): T {
  const encodings = shared.get(answer);
  if (encodings === undefined) return encode();
  const { byForm, encoded } = encodings;
  if (!byForm.has(form)) {
    byForm.set(form, encode());
    encoded();
  }
  return byForm.get(form) as T;
}
