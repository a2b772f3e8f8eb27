import { resolve } from 'node:path';
import type { Command } from 'commander';
import { publicKeyBase64 } from '../../client/signing/signing.ts';
import { readPrivateKey } from '../commands/file-content.ts';
import { writeProfile } from '../service/profile.ts';
import { ACTOR_FORMS, actorIdOf } from '../service/settings.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { type ApiCall, addApiCommand, neededOption, option } from './api-command.ts';
import { answered, recordLines, tableLines } from './shown-answer.ts';

interface ListOptions {
  readonly all?: boolean;
}

interface RevokeOptions {
  readonly reason?: string;
}

/** `ledger-trust keys`: the signing keys of an actor, and its API keys. */
export function addKeyCommands(program: Command, terminal: Terminal): void {
  const keys = program.command('keys').description('List, enrol, prefer and revoke signing keys; API keys: keys api.');

  addApiCommand<ListOptions>(keys, terminal, {
    usage: 'list [actor]',
    description: `List your signing keys, or those of an actor: ${ACTOR_FORMS}.`,
    kind: 'read',
    options: [option('--all', 'revoked keys, too')],
    async run(call) {
      const [actor = ''] = call.args;
      const actorId = actor === '' ? await ownActorId(call) : await actorIdOf(terminal, actor);
      const answer = await call.client.listActorKeys({ actorId, includeRevoked: call.options.all });
      const rows = answer.keys.map((key) => [
        key.kid,
        key.status,
        key.preferredSigning ? 'yes' : 'no',
        key.validFrom,
        key.publicKey,
      ]);
      const ids = answer.keys.map(({ kid }) => kid);
      return answered('listActorKeys', answer, ids, tableLines(['key', 'status', 'preferred', 'from', 'public'], rows));
    },
  });

  addApiCommand(keys, terminal, {
    usage: 'enroll <file>',
    description: 'Enrol the public key of a private key (ledger-trust keygen). The profile signs with it from now on.',
    kind: 'keyed',
    async run(call) {
      const [file = ''] = call.args;
      const publicKey = publicKeyBase64(await readPrivateKey(terminal, file));
      const actorId = await ownActorId(call);
      const key = await call.client.enrollActorKey({ actorId, publicKey }, call.once);
      const { profile, profileName, isForeignKey } = call.settings;
      const isKept = profile !== null && !isForeignKey && file !== '-';
      if (isKept) await writeProfile(terminal, profileName, { ...profile, key_file: resolve(file), key_id: key.kid });
      const signs = isKept ? `profile ${profileName}` : undefined;
      const lines = recordLines({ key: key.kid, algorithm: key.algorithm, status: key.status, signs });
      return answered('enrollActorKey', key, [key.kid], lines);
    },
  });

  addApiCommand(keys, terminal, {
    usage: 'prefer <key>',
    description: 'Make a signing key the one that the service tries where a call names none.',
    kind: 'keyed',
    async run(call) {
      const [kid = ''] = call.args;
      const answer = await call.client.preferActorKey({ actorId: await ownActorId(call), kid }, call.once);
      return answered('preferActorKey', answer, [kid], recordLines({ key: kid, preferred: 'yes' }));
    },
  });

  addApiCommand<RevokeOptions>(keys, terminal, {
    usage: 'revoke <key>',
    description: 'Revoke a signing key. What it signed before stays valid.',
    kind: 'keyed',
    options: [option('--reason <text>', 'why')],
    async run(call) {
      const [kid = ''] = call.args;
      const request = { actorId: await ownActorId(call), kid, reason: call.options.reason };
      const answer = await call.client.revokeActorKey(request, call.once);
      return answered('revokeActorKey', answer, [kid], recordLines({ key: kid, status: 'REVOKED' }));
    },
  });

  addApiKeyCommands(keys, terminal);
}

function addApiKeyCommands(keys: Command, terminal: Terminal): void {
  const apiKeys = keys.command('api').description('List, make and revoke API keys.');

  addApiCommand(apiKeys, terminal, {
    usage: 'list',
    description: 'List your API keys, without their secrets.',
    kind: 'read',
    async run({ client }) {
      const answer = await client.getDeveloper();
      const rows = answer.keys.map((key) => [key.keyId, key.environment, key.createdAt, key.keyPrefix, key.name]);
      const lines = tableLines(['api key', 'environment', 'created', 'begins', 'name'], rows);
      const ids = answer.keys.map(({ keyId }) => keyId);
      return answered('getDeveloper', answer, ids, lines);
    },
  });

  addApiCommand<{ readonly name: string }>(apiKeys, terminal, {
    usage: 'create',
    description: 'Make another API key. Keep it: only a retry with the same --idempotency-key shows it again.',
    kind: 'keyed',
    options: [neededOption('--name <name>', 'what it is for')],
    async run({ client, options, once }) {
      const key = await client.createApiKey({ name: options.name }, once);
      const lines = recordLines({ id: key.keyId, 'api key': key.apiKey, environment: key.environment, name: key.name });
      return answered('createApiKey', key, [key.keyId], lines);
    },
  });

  addApiCommand(apiKeys, terminal, {
    usage: 'revoke <id>',
    description: 'Revoke an API key, by its id.',
    kind: 'keyed',
    async run({ client, args: [keyId = ''], once }) {
      const answer = await client.revokeApiKey({ keyId }, once);
      return answered('revokeApiKey', answer, [keyId], recordLines({ 'api key': keyId, status: 'revoked' }));
    },
  });
}

/** The id of the actor that the API key belongs to. */
async function ownActorId({ client, settings }: ApiCall<unknown>): Promise<string> {
  const { profile, isForeignKey } = settings;
  return profile !== null && !isForeignKey ? profile.actor_id : (await client.getDeveloper()).actorId;
}
