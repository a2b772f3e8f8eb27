import type { DescField, DescService, Message } from '@bufbuild/protobuf';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import { type LedgerNaming, type Naming, nameRootLedger } from './ledger-naming.ts';

/**
 * How methods without a `ledger_id` in their request name a ledger. A `ledger_id` is noted for all methods alike.
 * Methods that open a ledger name it when they open it (ledger-opening.ts), RedeliverWebhook names the event's ledger
 * once it is found (webhooks.ts), and AppendEvents names the ledgers of its events (append-stream.ts).
 */

/** Of each method whose request has `uuid` (of a master), `master_id` or `organization_id`. */
export function namesByFields(naming: LedgerNaming, service: DescService): Readonly<Record<string, Naming<Message>>> {
  const names: Record<string, Naming<Message>> = {};
  for (const { localName, methodKind, input } of service.methods) {
    if (methodKind === 'bidi_streaming') continue;
    const [first, ...others] = input.fields.flatMap((field) => namesOfField(naming, field) ?? []);
    if (first === undefined) continue;
    names[localName] = others.length === 0 ? first : inTurn([first, ...others]);
  }
  return names;
}

function namesOfField(naming: LedgerNaming, { name, localName }: DescField): Naming<Message> | null {
  const idIn = (request: Message) => String((request as unknown as Readonly<Record<string, unknown>>)[localName] ?? '');
  if (name === 'organization_id') return (request, call) => naming.organization(call, idIn(request));
  if (name === 'uuid' || name === 'master_id')
    return (request, call, refused) => naming.master(call, idIn(request), refused);
  return null;
}

function inTurn(names: readonly Naming<Message>[]): Naming<Message> {
  return async (...of) => {
    for (const name of names) await name(...of);
  };
}

export function organizationNames(naming: LedgerNaming) {
  return { getOrganization: (request: { readonly id: string }, call: Call) => naming.organization(call, request.id) };
}

export function entityNames() {
  const ofActor = (request: { readonly actorId: string }, call: Call) => nameRootLedger(call, request.actorId);
  return {
    createRootLedger: (_request: object, call: Call) => nameRootLedger(call, callerOf(call).actorId),
    getRootLedger: ofActor,
    closeRootLedger: ofActor,
  };
}

export function webhookNames(naming: LedgerNaming) {
  const byId = (request: { readonly id: string }, call: Call) => naming.subscription(call, request.id);
  return {
    deleteWebhook: byId,
    listWebhookDeliveries: byId,
    testWebhook: byId,
    redeliverWebhook: byId,
  };
}
