import { isUuid } from '../values/uuid-form.ts';

/**
 * Names of logs (docs/proofs.md, "Names"). The name of the service is the value of LOG_ORIGIN. Each spelling is another
 * log, so every other form is refused.
 */

const SERVICE_NAME_BYTES_MAX = 120;
const LABEL = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?';
const SERVICE_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*(?::[1-9][0-9]{0,4})?(?:/[a-z0-9._~-]+)*$`);
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/;

export type LogKind = 'ledger' | 'master';
const folders: Readonly<Record<LogKind, string>> = { ledger: 'ledgers', master: 'masters' };

interface LogOrigin {
  readonly serviceName: string;
  readonly kind: LogKind;
  /** Of the ledger or of the master: a UUID in lower case. */
  readonly id: string;
}

/** Whether the text may be the name of a service, for example `ledger.example/v1`. */
export function isServiceName(text: string): boolean {
  return text.length <= SERVICE_NAME_BYTES_MAX && SERVICE_NAME.test(text) && !DOT_SEGMENT.test(text);
}

/** For example `ledger.example/v1/ledgers/0193a000-0000-7000-8000-000000000001`. RangeError for another name or id. */
export function originOf({ serviceName, kind, id }: LogOrigin): string {
  if (!isServiceName(serviceName)) throw new RangeError(`No name of a service: ${serviceName}`);
  if (!isUuid(id)) throw new RangeError(`No UUID in lower case: ${id}`);
  return `${serviceName}/${folders[kind]}/${id}`;
}

/** null: the text is not the origin of a ledger log or of a master log. */
export function parseOrigin(text: string): LogOrigin | null {
  const [, serviceName = '', folder = '', id = ''] = /^(.*)\/(ledgers|masters)\/([^/]*)$/.exec(text) ?? [];
  if (!isServiceName(serviceName) || !isUuid(id)) return null;
  return { serviceName, kind: folder === folders.ledger ? 'ledger' : 'master', id };
}
