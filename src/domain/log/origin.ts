/**
 * Names of logs. The name of the service is the value of LOG_ORIGIN. Each spelling is another log, so every other form
 * is refused.
 */

const SERVICE_NAME_BYTES_MAX = 120;
const LABEL = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?';
const SERVICE_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*(?::[1-9][0-9]{0,4})?(?:/[a-z0-9._~-]+)*$`);
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/;

/** Whether the text may be the name of a service, for example `ledger.example/v1`. */
export function isServiceName(text: string): boolean {
  return text.length <= SERVICE_NAME_BYTES_MAX && SERVICE_NAME.test(text) && !DOT_SEGMENT.test(text);
}
