import { CliError, type Terminal, usageError } from '../terminal/terminal.ts';
import { DEFAULT_PROFILE, findProfile, type Profile, readProfile } from './profile.ts';
import { baseUrlOf } from './service.ts';

/** Options of every command that calls the API. */
export interface SettingOptions {
  readonly profile?: string;
  readonly url?: string;
  readonly ca?: string;
}

/** What a call is made with. An option comes before its environment variable, and this before the profile. */
export interface Settings {
  readonly profileName: string;
  /** null if the profile does not exist. Only the default profile may be missing. */
  readonly profile: Profile | null;
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly keyFile: string | undefined;
  readonly keyId: string | undefined;
  readonly ca: string | undefined;
  /** The API key comes from the environment, so that it may be of another actor than the profile's. */
  readonly isForeignKey: boolean;
}

const DEFAULT_URL = 'http://localhost:8080';

/**
 * `mayBeMissing`: also a profile that is named may be missing. Throws CliError: exit code 64 for a URL or a name that
 * cannot be, 66 for a profile that is named and not there.
 */
export async function readSettings(
  terminal: Terminal,
  options: SettingOptions,
  mayBeMissing = false,
): Promise<Settings> {
  const env = (name: string) => terminal.env[`LEDGER_TRUST_${name}`]?.trim() || undefined;
  const named = options.profile ?? env('PROFILE');
  const profileName = named ?? DEFAULT_PROFILE;
  const isNeeded = named !== undefined && !mayBeMissing;
  const profile = await (isNeeded ? readProfile : findProfile)(terminal, profileName);
  const apiKey = env('API_KEY');
  const keyFile = env('KEY_FILE');
  // The profile's signing key is of the actor whose API key the profile holds. It fits no other actor.
  const signing = keyFile === undefined && apiKey === undefined ? profile : null;
  const envUrl = env('URL');
  return {
    profileName,
    profile,
    url:
      options.url !== undefined
        ? baseUrlOf('Option --url', options.url)
        : envUrl !== undefined
          ? baseUrlOf('LEDGER_TRUST_URL', envUrl)
          : (profile?.url ?? DEFAULT_URL),
    apiKey: apiKey ?? profile?.api_key,
    keyFile: keyFile ?? signing?.key_file,
    keyId: env('KEY_ID') ?? signing?.key_id,
    ca: options.ca ?? env('CA_FILE'),
    isForeignKey: apiKey !== undefined,
  };
}

/** Throws CliError (exit code 1). */
export function neededApiKey({ apiKey }: Pick<Settings, 'apiKey'>): string {
  if (apiKey !== undefined) return apiKey;
  throw new CliError('An API key is needed: run ledger-trust register or login, or set LEDGER_TRUST_API_KEY.');
}

const ACTOR_URI = 'svc:actor:';
/** How commands name an actor, for their help. */
export const ACTOR_FORMS = 'its id, svc:actor:<uuid>, or @ and the name of a profile';

/** The id of an actor that is named by its id, its URI, or as `@name` by a profile of this machine. Throws CliError. */
export async function actorIdOf(terminal: Terminal, text: string): Promise<string> {
  if (text.startsWith('@')) return (await readProfile(terminal, text.slice(1))).actor_id;
  if (text === '') throw usageError(`An actor is named by ${ACTOR_FORMS}.`);
  return text.startsWith(ACTOR_URI) ? text.slice(ACTOR_URI.length) : text;
}
