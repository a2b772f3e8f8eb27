/** What a transport makes of an answer. A message is an object for connect-es, which makes the bytes itself. */
type Form = 'json' | 'server-sent event' | 'message' | 'protobuf';

interface Encodings {
  readonly encoded: () => void;
  readonly byForm: Map<Form, unknown>;
}

const shared = new WeakMap<object, Encodings>();

/**
 * Marks an answer as one that many calls send: all of one method, since a form does not name the type. `encoded` is
 * called each time a transport encodes it.
 */
export function shareAnswer<T extends object>(answer: T, encoded: () => void): T {
  shared.set(answer, { encoded, byForm: new Map() });
  return answer;
}

export function isShared(answer: object): boolean {
  return shared.has(answer);
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
