import type { Command } from 'commander';
import { ACTOR_FORMS, actorIdOf } from '../service/settings.ts';
import { type Terminal, usageError } from '../terminal/terminal.ts';
import { addApiCommand, neededOption, option, type PageOptions, pageOf, pageOptions } from './api-command.ts';
import { jsonArgument } from './json-argument.ts';
import { answered, recordLines, tableLines } from './shown-answer.ts';

interface ScopeOptions {
  readonly ledger?: string;
  readonly master?: string;
  readonly organization?: string;
}

interface GrantOptions extends ScopeOptions {
  readonly to: string;
  readonly role: string;
  readonly access?: string;
  readonly permissions?: string;
}

interface RevokeOptions extends ScopeOptions {
  readonly from: string;
}

interface SnapshotOptions extends ScopeOptions, PageOptions {
  readonly at?: string;
}

const scopeOptions = () => [
  option('--ledger <uuid>', 'of this ledger'),
  option('--master <uuid>', 'of this master'),
  option('--organization <uuid>', 'of this organization: its root ledger (FRL), and no other ledger'),
];

/** `ledger-trust grant`, `revoke` and `snapshot`: who else may read or write. */
export function addGrantCommands(program: Command, terminal: Terminal): void {
  addApiCommand<GrantOptions>(program, terminal, {
    usage: 'grant',
    description:
      'Let another actor read or write a ledger, a master, or the root ledger of an organization: an event of that ledger.',
    kind: 'keyed',
    options: [
      ...scopeOptions(),
      neededOption('--to <actor>', ACTOR_FORMS),
      neededOption('--role <role>', 'what the actor is to it, for example AUDITOR or OPS'),
      option('--access <access>', 'short for --permissions {"access":"…"}').choices(['read', 'write']),
      option('--permissions <json>', 'a JSON object, a file that holds one, or - for stdin'),
    ],
    async run({ client, options, once }) {
      const scope = scopeOf(options);
      const { role, access } = options;
      if (access !== undefined && options.permissions !== undefined)
        throw usageError('Give either --access or --permissions.');
      const permissions =
        access !== undefined
          ? { access }
          : options.permissions === undefined
            ? undefined
            : await jsonArgument(terminal, '--permissions', options.permissions);
      const grant = { delegateActorId: await actorIdOf(terminal, options.to), role, permissions };
      if (scope.ledgerId !== undefined) {
        const link = await client.grantLedgerDelegation({ ledgerId: scope.ledgerId, ...grant }, once);
        return answered('grantLedgerDelegation', link, [link.linkId], grantLines(link));
      }
      if (scope.masterId !== undefined) {
        const link = await client.grantMasterDelegation({ masterId: scope.masterId, ...grant }, once);
        return answered('grantMasterDelegation', link, [link.linkId], grantLines(link));
      }
      const link = await client.grantOrganizationDelegation(
        { organizationId: scope.organizationId ?? '', ...grant },
        once,
      );
      return answered('grantOrganizationDelegation', link, [link.linkId], grantLines(link));
    },
  });

  addApiCommand<RevokeOptions>(program, terminal, {
    usage: 'revoke',
    description: 'Take a grant back: an event of the ledger.',
    kind: 'keyed',
    options: [...scopeOptions(), neededOption('--from <actor>', ACTOR_FORMS)],
    async run({ client, options, once }) {
      const scope = scopeOf(options);
      const delegateActorId = await actorIdOf(terminal, options.from);
      if (scope.ledgerId !== undefined) {
        const link = await client.revokeLedgerDelegation({ ledgerId: scope.ledgerId, delegateActorId }, once);
        return answered('revokeLedgerDelegation', link, [link.linkId], revokeLines(link));
      }
      if (scope.masterId !== undefined) {
        const link = await client.revokeMasterDelegation({ masterId: scope.masterId, delegateActorId }, once);
        return answered('revokeMasterDelegation', link, [link.linkId], revokeLines(link));
      }
      const { organizationId = '' } = scope;
      const link = await client.revokeOrganizationDelegation({ organizationId, delegateActorId }, once);
      return answered('revokeOrganizationDelegation', link, [link.linkId], revokeLines(link));
    },
  });

  addApiCommand<SnapshotOptions>(program, terminal, {
    usage: 'snapshot',
    description: 'List the grants that were in force at a time.',
    kind: 'read',
    options: [...scopeOptions(), option('--at <time>', 'ISO 8601; now if left out'), ...pageOptions()],
    async run({ client, options }) {
      const answer = await client.getDelegationSnapshot({
        ...scopeOf(options),
        at: options.at,
        ...pageOf(options),
      });
      const rows = answer.delegations.map((link) => [
        link.linkId,
        link.delegateActorId,
        link.grantedAt,
        link.expiresAt,
        link.role,
        JSON.stringify(link.permissions),
      ]);
      const columns = ['link', 'delegate', 'granted', 'expires', 'role', 'permissions'];
      const ids = answer.delegations.map(({ linkId }) => linkId);
      return answered('getDelegationSnapshot', answer, ids, tableLines(columns, rows));
    },
  });
}

/** Exactly one of the ids is given. Throws CliError (exit code 64). */
function scopeOf({ ledger, master, organization }: ScopeOptions) {
  if ([ledger, master, organization].filter((id) => id !== undefined).length !== 1)
    throw usageError('Give one of --ledger, --master and --organization.');
  return { ledgerId: ledger, masterId: master, organizationId: organization };
}

interface Granted {
  readonly linkId: string;
  readonly delegateActorId: string;
  readonly role: string;
  readonly grantedAt: string;
}

function grantLines({ linkId, delegateActorId, role, grantedAt }: Granted): string[] {
  return recordLines({ link: linkId, delegate: delegateActorId, role, granted: grantedAt });
}

interface Revoked {
  readonly linkId: string;
  readonly delegateActorId: string;
  readonly revokedAt: string;
}

function revokeLines({ linkId, delegateActorId, revokedAt }: Revoked): string[] {
  return recordLines({ link: linkId, delegate: delegateActorId, revoked: revokedAt });
}
