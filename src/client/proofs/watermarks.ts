import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { LedgerError } from '../../domain/errors.ts';
import { parseJsonBytes, toValue } from '../../domain/json/json.ts';
import { checkPublicKey } from '../../domain/keys/public-key.ts';
import { logKey } from '../../domain/log/log-key.ts';
import { isServiceName, parseOrigin } from '../../domain/log/origin.ts';
import { invalidAnswer } from '../error.ts';
import type { WatermarkState, WatermarkStore } from '../watermark-store.ts';
import { renameDurably } from './durable-rename.ts';
import { givenLogKey } from './verify-proof.ts';

/** What the user knows from elsewhere than the service. */
export interface WatermarksOptions extends Pick<WatermarkStore, 'logKeys' | 'newOrigin'> {}

/** The file stays as it was. `cause` says why. */
export class WatermarksNotWritten extends Error {
  override name = 'WatermarksNotWritten';

  constructor(path: string, cause: unknown) {
    super(`${path} cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

const FORMAT = 'ledger-trust-watermarks/1';
/** Some 100,000 logs. */
const FILE_MAX_MIB = 64;
const FILE_MAX_BYTES = FILE_MAX_MIB * 1024 * 1024;

/**
 * The watermarks of one service in a file: its name, the keys that are accepted, and the newest verified checkpoint of
 * each log. The file has at most 64 MiB. It is replaced as a whole, and readable by its owner alone. Node only. Clients
 * of one process may share an object. Let one process at a time use the file: of two updates at once one can be lost.
 *
 * Methods reject with LedgerTrustError `invalid_answer` for a file that holds something else or more, and with the
 * error of the file system. If the file cannot be written, that is the `cause` of the error.
 */
export class Watermarks implements WatermarkStore {
  readonly logKeys: readonly string[];
  readonly newOrigin?: string;
  readonly #file: string;
  /** Ends when the updates so far have ended. */
  #updates: Promise<void> = Promise.resolve();

  /** TypeError for a log key or a name that cannot be. */
  constructor(file: string, { logKeys = [], newOrigin }: WatermarksOptions = {}) {
    for (const key of logKeys) givenLogKey(key);
    if (newOrigin !== undefined && !isServiceName(newOrigin))
      throw new TypeError(`${JSON.stringify(newOrigin)} is no name of a service, such as ledger.example/v1`);
    this.#file = file;
    this.logKeys = logKeys;
    if (newOrigin !== undefined) this.newOrigin = newOrigin;
  }

  async read(): Promise<WatermarkState | null> {
    let bytes: Uint8Array;
    try {
      // `end` is the last byte that is read: one too many.
      bytes = Buffer.concat(await Array.fromAsync(createReadStream(this.#file, { end: FILE_MAX_BYTES })));
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
      throw error;
    }
    try {
      if (bytes.length > FILE_MAX_BYTES) throw new TypeError(`it is larger than ${FILE_MAX_MIB} MiB`);
      return stateFrom(toValue(parseJsonBytes(bytes)));
    } catch (error) {
      if (!(error instanceof LedgerError || error instanceof TypeError)) throw error;
      throw invalidAnswer(this.#file, 'a file of watermarks', error);
    }
  }

  update(change: (state: WatermarkState | null) => WatermarkState | null): Promise<void> {
    const update = this.#updates.then(async () => {
      const changed = change(await this.read());
      if (changed !== null) await replace(this.#file, Buffer.from(`${JSON.stringify(jsonOf(changed), null, 2)}\n`));
    });
    this.#updates = update.catch(() => {});
    return update;
  }
}

/** After a crash the file has its old content or the new one. Throws WatermarksNotWritten. */
async function replace(path: string, content: Buffer): Promise<void> {
  const part = `${path}.${randomUUID()}.part`;
  try {
    if (content.length > FILE_MAX_BYTES)
      throw new Error(`it would be larger than ${FILE_MAX_MIB} MiB: keep some of the logs in another file`);
    await using file = await open(part, 'wx', 0o600);
    await file.writeFile(content);
    await file.sync();
    await renameDurably(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw new WatermarksNotWritten(path, error);
  }
}

function jsonOf(state: WatermarkState): object {
  const { origin, logKeys, authorityKeys, checkpoints, previous } = state;
  return {
    format: FORMAT,
    origin,
    log_keys: logKeys,
    authority_keys: authorityKeys,
    checkpoints: Object.fromEntries(checkpoints),
    previous: previous.map((ended) => ({
      origin: ended.origin,
      log_keys: ended.logKeys,
      checkpoints: Object.fromEntries(ended.checkpoints),
    })),
  };
}

/** TypeError, or LedgerError for a key that checkPublicKey refuses. */
function stateFrom(value: unknown): WatermarkState {
  const { format, authority_keys, previous, ...service } = membersOf(value);
  if (format !== FORMAT) throw new TypeError(`its format is not ${FORMAT}`);
  const authorityKeys = textsOf(authority_keys);
  for (const key of authorityKeys) checkPublicKey(key);
  if (!Array.isArray(previous)) throw new TypeError('previous is no list');
  return { ...serviceFrom(service), authorityKeys, previous: previous.map(serviceFrom) };
}

function serviceFrom(value: unknown): WatermarkState['previous'][number] {
  const { origin, log_keys, checkpoints, ...others } = membersOf(value);
  if (typeof origin !== 'string' || !isServiceName(origin)) throw new TypeError('origin is no name of a service');
  const [other] = Object.keys(others);
  if (other !== undefined) throw new TypeError(`it has a member ${other}`);
  const logKeys = textsOf(log_keys);
  if (logKeys.some((key) => logKey(key) === null)) throw new TypeError('one of its log keys is none');
  const notes = Object.entries(membersOf(checkpoints)).map(([log, note]) => {
    if (typeof note !== 'string' || parseOrigin(log)?.serviceName !== origin)
      throw new TypeError(`${log} is no log of the service`);
    return [log, note] as const;
  });
  return { origin, logKeys, checkpoints: new Map(notes) };
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('it is no object');
  return { ...value };
}

function textsOf(value: unknown): string[] {
  if (!Array.isArray(value) || !value.every((one) => typeof one === 'string'))
    throw new TypeError('it is no list of texts');
  return value;
}
