import {
  type AuthorityDocument,
  type AuthorityKeys,
  authorityKeysOf,
  type KeySource,
  keysFromDocuments,
  keysFromResolver,
} from '../../client/verify/key-source.ts';
import type { TrustedKeys } from '../../client/verify/verifying.ts';
import { isSameFile } from '../commands/file-content.ts';
import { baseUrlOf, openService } from '../service/service.ts';
import { type Terminal, usageError } from '../terminal/terminal.ts';
import { readActorDocuments, readAuthorityDocument, type VerifyInput } from './verify-input.ts';
import type { KeyOrigin } from './verify-report.ts';

/** Options of `verify` that say where keys come from. */
export interface TrustOptions {
  readonly keys?: readonly string[];
  readonly authority?: string;
  readonly resolver?: string;
  readonly trustFileKeys?: boolean;
  readonly ca?: string;
}

/** Throws CliError (exit code 64) if options exclude each other. */
export function checkTrustOptions(options: TrustOptions): void {
  if (options.resolver !== undefined && (options.keys !== undefined || options.authority !== undefined)) {
    throw usageError('Give either --resolver or --keys and --authority.');
  }
  if (options.resolver !== undefined && options.trustFileKeys === true) {
    throw usageError('Give either --resolver or --trust-file-keys: with a resolver no key of the file is used.');
  }
}

interface Trust extends AsyncDisposable {
  readonly keys: KeySource;
  readonly authorityKeys: AuthorityKeys | null;
  readonly trustedKeys: TrustedKeys;
  /** null if there is no trust anchor, or only one that came with the events. */
  readonly trustedAnchor: AuthorityDocument | null;
  readonly origin: KeyOrigin;
}

/**
 * Chooses the keys: from the resolver if one is named, else from the named files, else from the file that is verified,
 * whose keys are not trusted unless the user says so. Throws CliError, and what a call to the resolver throws.
 */
export async function trustOf(
  terminal: Terminal,
  file: string,
  input: VerifyInput,
  options: TrustOptions,
): Promise<Trust> {
  if (options.resolver !== undefined) {
    const client = await openService(terminal, {
      baseUrl: baseUrlOf('Option --resolver', options.resolver),
      ca: options.ca,
    });
    try {
      const anchor = await client.getAuthority();
      return {
        keys: keysFromResolver(client),
        authorityKeys: authorityKeysOf(anchor),
        trustedKeys: 'all',
        trustedAnchor: anchor,
        origin: { text: `from the resolver at ${options.resolver}`, isResolver: true, phase: anchor.phase },
        [Symbol.asyncDispose]: () => client.close(),
      };
    } catch (error) {
      await client.close();
      throw error;
    }
  }
  const named = options.keys === undefined ? null : await readActorDocuments(terminal, options.keys);
  const anchor =
    options.authority === undefined ? input.authority : await readAuthorityDocument(terminal, options.authority);
  const trusts = options.trustFileKeys === true;
  const actors = trusts || (await isOtherFile(file, options.keys));
  const authority =
    trusts || (await isOtherFile(file, options.authority === undefined ? undefined : [options.authority]));
  return {
    keys: keysFromDocuments(named ?? input.actors),
    authorityKeys: anchor === null ? null : authorityKeysOf(anchor),
    trustedKeys: actors ? (authority ? 'all' : 'actors') : authority ? 'authority' : 'none',
    trustedAnchor: authority ? anchor : null,
    origin: { text: keysFrom(input, options), isResolver: false, phase: anchor?.phase ?? null },
    [Symbol.asyncDispose]: async () => {},
  };
}

/** Whether keys are from named files, and none of these is the file that is verified. */
async function isOtherFile(file: string, named: readonly string[] | undefined): Promise<boolean> {
  if (named === undefined) return false;
  const same = await Promise.all(named.map((path) => isSameFile(path, file)));
  return !same.includes(true);
}

function keysFrom(input: VerifyInput, { keys, authority }: TrustOptions): string {
  const named = keys ?? (authority === undefined ? [] : [authority]);
  const isInFile =
    (keys === undefined && input.actors.length > 0) || (authority === undefined && input.authority !== null);
  if (named.length === 0) return isInFile ? 'from the file itself' : 'none given';
  return `from ${named.join(', ')}${isInFile ? ' and from the file itself' : ''}`;
}
