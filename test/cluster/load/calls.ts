import { randomUUID } from 'node:crypto';
import type { CallOptions, LedgerTrustClient, StreamedEvent } from '../../../src/client/index.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import type { Command, Lane } from '../../../src/domain/ledger/command.ts';
import { commandId } from '../../../src/service/idempotency/command-key.ts';
import * as make from '../../support/commands.ts';
import { appendedType } from '../../support/history/history-check.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import type { Answered } from './load-history.ts';
import { businessRef, type LoadLedger, type LoadMaster, type LoadWorld, masterScope } from './load-world.ts';
import type { LoadParty } from './parties.ts';

/** A call with one name and one idempotency key, which may be attempted several times. */
export interface Call {
  readonly name: string;
  readonly command: Command;
  attempt(node: NodeUnderTest): Promise<Answered>;
}

export interface AppendCall extends Call {
  readonly event: StreamedEvent;
  /** Makes the append through a client that may retry by itself. */
  by(client: LedgerTrustClient, onAnswer: NonNullable<CallOptions['onAnswer']>): Promise<Answered>;
}

/** Makes the calls of a load, each with the command that the history checker compares. */
export class LoadCalls {
  readonly #world: LoadWorld;
  #made = 0;

  constructor(world: LoadWorld) {
    this.#world = world;
  }

  append(ledger: LoadLedger, master: LoadMaster, party: LoadParty, lane: Lane | null = null): AppendCall {
    const name = this.#name('append');
    const { options, base } = marked(party);
    const payload = { n: name, key: options.idempotencyKey };
    const event = { uuid: master.id, eventType: appendedType, payload };
    const stored = canonicalJson({ ...payload, ...master.injected });
    return {
      name,
      event: { ...event, ...options },
      command: make.append({ ...base, ledgerId: ledger.id, masterId: master.id, payload: stored, lane }),
      attempt: async (node) => written(await party.at(node).appendEvent(event, options)),
      by: async (client, onAnswer) => written(await client.appendEvent(event, { ...options, onAnswer })),
    };
  }

  grant(ledger: LoadLedger, master: LoadMaster, { actorId: delegateActorId }: LoadParty): Call {
    const place = { ledgerId: ledger.id, masterId: master.id };
    const request = { masterId: master.id, delegateActorId, role: 'OPS', permissions: { access: 'write' } };
    return this.#bySupplier(
      'grant',
      (base) => make.grant({ ...base, ...place, delegateActorId, access: 'write' }),
      (client, options) => client.grantMasterDelegation(request, options).then(() => master.id),
    );
  }

  revoke(ledger: LoadLedger, master: LoadMaster, { actorId: delegateActorId }: LoadParty): Call {
    const request = { masterId: master.id, delegateActorId };
    return this.#bySupplier(
      'revoke',
      (base) => make.revoke({ ...base, ledgerId: ledger.id, ...request }),
      (client, options) => client.revokeMasterDelegation(request, options).then(() => master.id),
    );
  }

  createMaster(ledger: LoadLedger): Call {
    const request = { ledgerId: ledger.id, businessRef, scope: masterScope };
    return this.#bySupplier(
      'create master',
      (base) => make.createMaster({ ...base, ledgerId: ledger.id, masterId: randomUUID() }),
      (client, options) => client.createMaster(request, options).then(({ uuid }) => uuid),
    );
  }

  closeMaster(ledger: LoadLedger, master: LoadMaster): Call {
    return this.#bySupplier(
      'close master',
      (base) => make.closeMaster({ ...base, ledgerId: ledger.id, masterId: master.id }),
      (client, options) => client.closeMaster({ uuid: master.id }, options).then(() => master.id),
    );
  }

  /** `send` resolves with the id of the master that the call was about. */
  #bySupplier(
    what: string,
    commandOf: (base: ReturnType<typeof marked>['base']) => Command,
    send: (client: LedgerTrustClient, options: CallOptions) => Promise<string>,
  ): Call {
    const { supplier } = this.#world;
    const { options, base } = marked(supplier);
    return {
      name: this.#name(what),
      command: commandOf(base),
      attempt: async (node) => ({ kind: 'done', masterId: await send(supplier.at(node), options) }),
    };
  }

  #name(what: string): string {
    this.#made += 1;
    return `${what} ${this.#made}`;
  }
}

/** Returns a new idempotency key and the fields of a command that has it. */
function marked(party: LoadParty) {
  const idempotencyKey = randomUUID();
  const base = { actorId: party.actorId, commandKeys: [make.commandKey(commandId(party.actorId, idempotencyKey))] };
  return { options: { idempotencyKey } satisfies CallOptions, base };
}

export function written(answer: {
  readonly eventId: string;
  readonly ledgerId: string;
  readonly seq: number;
  readonly hash: string;
  readonly masterSeq: number;
  readonly traceledgerMasterUuid: string;
}): Answered {
  const { eventId: id, ledgerId, seq, hash } = answer;
  const master = { id: answer.traceledgerMasterUuid, prevHash: '', seq: answer.masterSeq };
  return { kind: 'written', outcome: { event: { id, ledgerId, seq, hash, master } } };
}
