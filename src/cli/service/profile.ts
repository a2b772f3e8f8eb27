import { mkdir, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { exitCodes } from '../terminal/exit-codes.ts';
import { fileSink, type Sink } from '../terminal/sink.ts';
import { CliError, inputError, readInput, reasonOf, type Terminal, usageError } from '../terminal/terminal.ts';

/** What a profile file holds, as JSON. It holds a secret, so that its owner alone may read it. */
export interface Profile {
  readonly url: string;
  readonly api_key: string;
  readonly actor_id: string;
  /** Absolute path of the private key that signs, PEM. Left out if the actor has none. */
  readonly key_file?: string;
  /** The id of that key: `svc:actor:<uuid>#key-<n>`. */
  readonly key_id?: string;
}

export const DEFAULT_PROFILE = 'default';
/** The names are names of files, so no name leads out of the folder. */
const PROFILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const OTHERS_MAY_READ = 0o077;

/** Throws CliError (exit code 64) for a name that no profile can have. */
function checkProfileName(name: string): string {
  if (PROFILE_NAME.test(name)) return name;
  throw usageError(
    `A profile is named by 1 to 64 letters, digits, dots, hyphens and underscores: ${JSON.stringify(name)} is no such name.`,
  );
}

/** The folder of profiles, by the XDG Base Directory Specification, which ignores a relative XDG_CONFIG_HOME. */
function profileFolder({ env }: Terminal): string {
  const { XDG_CONFIG_HOME: config = '', HOME: home = homedir() } = env;
  return join(isAbsolute(config) ? config : join(home, '.config'), 'ledger-trust');
}

export function profilePath(terminal: Terminal, name: string): string {
  return join(profileFolder(terminal), `${checkProfileName(name)}.json`);
}

/** Where `register` keeps the private key that it makes for a profile. */
export function profileKeyPath(terminal: Terminal, name: string): string {
  return join(profileFolder(terminal), `${checkProfileName(name)}.pem`);
}

/** null if there is no such profile. Throws CliError (exit code 66) if its file cannot be read, or holds none. */
export async function findProfile(terminal: Terminal, name: string): Promise<Profile | null> {
  const path = profilePath(terminal, name);
  let mode: number;
  try {
    ({ mode } = await stat(path));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw inputError(`${path} cannot be read: ${reasonOf(error)}.`);
  }
  const text = (await readInput(terminal, path)).toString('utf8');
  if (process.platform !== 'win32' && (mode & OTHERS_MAY_READ) !== 0)
    terminal.tell(`ledger-trust: other users may read ${path}, which holds a secret: run chmod 600 on it.\n`);
  const profile = profileIn(text);
  if (profile === null) throw inputError(`${path} holds no profile: remove it, and run ledger-trust login.`);
  return profile;
}

/** The same, and throws CliError (exit code 66) if there is no such profile. */
export async function readProfile(terminal: Terminal, name: string): Promise<Profile> {
  const profile = await findProfile(terminal, name);
  if (profile !== null) return profile;
  throw inputError(
    `There is no profile ${name}: make it with ledger-trust register or ledger-trust login, and --profile ${name}.`,
  );
}

function profileIn(text: string): Profile | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { url, api_key, actor_id, key_file, key_id } = value as { readonly [name: string]: unknown };
  if (typeof url !== 'string' || typeof api_key !== 'string' || typeof actor_id !== 'string') return null;
  return {
    url,
    api_key,
    actor_id,
    ...(typeof key_file === 'string' ? { key_file } : {}),
    ...(typeof key_id === 'string' ? { key_id } : {}),
  };
}

/** Makes or replaces the file of a profile, mode 0600, as a whole. Throws CliError. */
export async function writeProfile(terminal: Terminal, name: string, profile: Profile): Promise<void> {
  await using file = await openProfile(terminal, name);
  await keepProfile(file, profile);
}

/** Opens the file of a profile, which keepProfile makes or replaces. Throws CliError. */
export async function openProfile(terminal: Terminal, name: string): Promise<Sink> {
  await makeProfileFolder(terminal);
  return fileSink(profilePath(terminal, name));
}

export async function keepProfile(file: Sink, profile: Profile): Promise<void> {
  await file.write(JSON.stringify(profile, null, 2));
  await file.keep();
}

async function makeProfileFolder(terminal: Terminal): Promise<void> {
  const folder = profileFolder(terminal);
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw new CliError(`${folder} cannot be made: ${reasonOf(error)}.`, exitCodes.writeFailed);
  });
}
