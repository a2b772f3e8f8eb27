import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { LedgerTrustError } from '../../client/error.ts';
import { publicKeyBase64 } from '../../client/signing/signing.ts';
import { actorUri } from '../../domain/values/svc-uri.ts';
import { readApiKey, readPrivateKey, writePrivateKey } from '../commands/file-content.ts';
import {
  keepProfile,
  openProfile,
  type Profile,
  profileKeyPath,
  profilePath,
  writeProfile,
} from '../service/profile.ts';
import { openService } from '../service/service.ts';
import { CliError, type Terminal, usageError } from '../terminal/terminal.ts';
import { type ApiCall, addApiCommand, neededOption, option, sentenceOf } from './api-command.ts';
import { answered, recordLines, type Shown } from './shown-answer.ts';

interface RegisterOptions {
  readonly name: string;
  readonly email: string;
  readonly region: string;
  readonly key?: string;
  readonly signing: boolean;
  readonly replace?: boolean;
  readonly url?: string;
}

interface LoginOptions {
  readonly apiKeyFile?: string;
  readonly key?: string;
  readonly replace?: boolean;
}

/** `ledger-trust register`, `login` and `whoami`: who calls. */
export function addAccountCommands(program: Command, terminal: Terminal): void {
  addApiCommand<RegisterOptions>(program, terminal, {
    usage: 'register',
    description:
      'Register a developer, make a signing key, and keep both in a profile. Does nothing if the profile is there.',
    kind: 'unkeyed',
    makesProfile: true,
    options: [
      neededOption('--name <name>', 'name of the developer'),
      neededOption('--email <address>', 'e-mail address of the developer'),
      option('--region <region>', 'region of the production environment').choices(['in', 'eu']).default('eu'),
      option('--key <file>', 'sign with this Ed25519 private key, PEM, and make none'),
      option('--no-signing', 'enrol no signing key'),
      option('--replace', 'register anew if the profile is there'),
    ],
    run: register,
  });

  addApiCommand<LoginOptions>(program, terminal, {
    usage: 'login',
    description: 'Keep an API key that you have in a profile, after a call that shows that the service takes it.',
    kind: 'read',
    makesProfile: true,
    options: [
      option('--api-key-file <file>', 'file that holds the API key, or - for stdin; else LEDGER_TRUST_API_KEY'),
      option('--key <file>', 'sign with this Ed25519 private key, PEM, which is enrolled already'),
      option('--replace', 'also if the profile is of another actor'),
    ],
    run: login,
  });

  addApiCommand(program, terminal, {
    usage: 'whoami',
    description: 'Show the actor that the profile calls as.',
    kind: 'read',
    async run({ client, settings }) {
      const answer = await client.getDeveloper();
      const lines = recordLines({
        actor: answer.actorId,
        environment: answer.environment,
        role: answer.role,
        url: settings.url,
        profile: settings.isForeignKey ? 'none: the API key is from LEDGER_TRUST_API_KEY' : settings.profileName,
        'signing key': settings.keyId ?? settings.keyFile ?? 'none',
      });
      return answered('getDeveloper', answer, [answer.actorId], lines);
    },
  });
}

async function register({ terminal, client, settings, options }: ApiCall<RegisterOptions>): Promise<Shown> {
  const { profile, profileName, url, ca } = settings;
  if (profile !== null && options.replace !== true) return registered(terminal, profileName, profile, options, ca);
  const productionName = `${profileName}-production`;
  if (existsSync(profilePath(terminal, productionName)) && options.replace !== true)
    throw new CliError(`There is a profile ${productionName} already: give another --profile, or --replace.`);
  // Opened first: a folder that takes no file is found before API keys are made.
  await using file = await openProfile(terminal, profileName);
  await using productionFile = await openProfile(terminal, productionName);
  const key = options.signing ? await signingKey(terminal, profileName, options.key) : null;
  const { name, email, region } = options;
  const publicKey = key === null ? undefined : publicKeyBase64(key.privateKey);
  const { sandbox, production } = await client.registerDeveloper({ name, email, region, publicKey });
  const made: Profile = {
    url,
    api_key: sandbox.apiKey,
    actor_id: sandbox.actorId,
    ...(key === null || sandbox.signingKey === null ? {} : { key_file: key.file, key_id: sandbox.signingKey.kid }),
  };
  await keepProfile(productionFile, { url, api_key: production.apiKey, actor_id: production.actorId });
  await keepProfile(file, made);
  return shownProfile(profileName, made, { environment: 'sandbox', production: productionName });
}

/** The profile is there. Checks that the service takes its API key, so that registering again changes nothing. */
async function registered(
  terminal: Terminal,
  name: string,
  profile: Profile,
  options: RegisterOptions,
  ca: string | undefined,
): Promise<Shown> {
  if (options.url !== undefined && options.url !== profile.url)
    throw usageError(`Profile ${name} is of ${profile.url}: give another --profile, or --replace.`);
  await using client = await openService(terminal, { baseUrl: profile.url, apiKey: profile.api_key, ca });
  try {
    const { environment } = await client.getDeveloper();
    terminal.tell(`Profile ${name} is there already, so nothing was registered.\n`);
    return shownProfile(name, profile, { environment });
  } catch (error) {
    if (!(error instanceof LedgerTrustError) || error.code !== 'invalid_api_key') throw error;
    throw new CliError(
      `${profile.url} does not take the API key of profile ${name}: ${sentenceOf(error)} Give another --profile, or --replace to register anew.`,
    );
  }
}

/** The key that signs: that of `file`, else the one that was made for this profile before, else a new one. */
async function signingKey(
  terminal: Terminal,
  profileName: string,
  file: string | undefined,
): Promise<{ readonly privateKey: KeyObject; readonly file: string }> {
  const path = file === undefined ? profileKeyPath(terminal, profileName) : resolve(file);
  if (file !== undefined || existsSync(path)) return { privateKey: await readPrivateKey(terminal, path), file: path };
  const { privateKey } = generateKeyPairSync('ed25519');
  await writePrivateKey(path, privateKey);
  return { privateKey, file: path };
}

async function login({ terminal, settings, options }: ApiCall<LoginOptions>): Promise<Shown> {
  const { profile, profileName, url, ca } = settings;
  const apiKey = await readApiKey(terminal, options.apiKeyFile, {
    apiKey: terminal.env.LEDGER_TRUST_API_KEY?.trim() || undefined,
  });
  await using client = await openService(terminal, { baseUrl: url, apiKey, ca });
  const { actorId, environment } = await client.getDeveloper();
  const isSame = profile === null || (profile.actor_id === actorId && profile.url === url);
  if (!isSame && options.replace !== true) {
    throw new CliError(
      `Profile ${profileName} is of actor ${profile.actor_id} at ${profile.url}: give another --profile, or --replace.`,
    );
  }
  const before = isSame ? profile : null;
  let signing = { key_file: before?.key_file, key_id: before?.key_id };
  if (options.key !== undefined) {
    const publicKey = publicKeyBase64(await readPrivateKey(terminal, options.key));
    const { keys } = await client.listActorKeys({ actorId });
    const enrolled = keys.find((key) => key.publicKey === publicKey);
    if (enrolled === undefined) {
      throw new CliError(
        `The key in ${options.key} is not enrolled for actor ${actorId}: log in without --key, then run ledger-trust keys enroll.`,
      );
    }
    signing = { key_file: resolve(options.key), key_id: enrolled.kid };
  }
  const made: Profile = { url, api_key: apiKey, actor_id: actorId, ...signing };
  await writeProfile(terminal, profileName, made);
  return shownProfile(profileName, made, { environment });
}

/** Without the API key, which is a secret. */
function shownProfile(
  name: string,
  profile: Profile,
  more: { readonly environment: string; readonly production?: string },
): Shown {
  const json = {
    profile: name,
    url: profile.url,
    actor_id: profile.actor_id,
    svc_id: actorUri(profile.actor_id),
    environment: more.environment,
    signing_key_id: profile.key_id ?? null,
    key_file: profile.key_file ?? null,
    production_profile: more.production ?? null,
  };
  const lines = recordLines({
    profile: name,
    url: profile.url,
    actor: profile.actor_id,
    environment: more.environment,
    'signing key': profile.key_id ?? 'none',
    'in file': profile.key_file,
    production: more.production === undefined ? undefined : `profile ${more.production}`,
  });
  return { json, ids: [profile.actor_id], lines };
}
