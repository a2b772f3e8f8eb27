import { fieldWriter, messageWriter } from '../../service/encoding/message-json.ts';
import type { RestRoute } from '../endpoints/routes.ts';

/**
 * Returns the function that writes the body of a route's answer, by the route's `response_body` rule. The function
 * returns null if the answer has no fields (REST answers 204).
 */
export function answerWriter(route: RestRoute): (answer: object) => string | null {
  // RestLiveCall writes each message of a live stream as an event.
  if (route.emptyAnswer || route.rule.live) return () => null;
  if (!route.responseBody) return messageWriter(route.method.output);
  const name = route.responseBody.localName;
  const write = fieldWriter(route.responseBody);
  return (answer) => write((answer as Record<string, unknown>)[name]);
}
