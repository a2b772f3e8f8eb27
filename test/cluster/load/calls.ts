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
  /** The append for a stream. */
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

  grant(ledger: LoadLedger, master: LoadMaster, delegate: LoadParty): Call {
    const { supplier } = this.#world;
    const { options, base } = marked(supplier);
    const delegateActorId = delegate.actorId;
    const request = { masterId: master.id, delegateActorId, role: 'OPS', permissions: { access: 'write' } };
    const place = { ledgerId: ledger.id, masterId: master.id };
    return {
      name: this.#name('grant'),
      command: make.grant({ ...base, ...place, delegateActorId, access: 'write' }),
      attempt: async (node) => {
        await supplier.at(node).grantMasterDelegation(request, options);
        return { kind: 'done', masterId: master.id };
      },
    };
  }

  revoke(ledger: LoadLedger, master: LoadMaster, delegate: LoadParty): Call {
    const { supplier } = this.#world;
    const { options, base } = marked(supplier);
    const delegateActorId = delegate.actorId;
    return {
      name: this.#name('revoke'),
      command: make.revoke({ ...base, ledgerId: ledger.id, masterId: master.id, delegateActorId }),
      attempt: async (node) => {
        await supplier.at(node).revokeMasterDelegation({ masterId: master.id, delegateActorId }, options);
        return { kind: 'done', masterId: master.id };
      },
    };
  }

  createMaster(ledger: LoadLedger): Call {
    const { supplier } = this.#world;
    const { options, base } = marked(supplier);
    const request = { ledgerId: ledger.id, businessRef, scope: masterScope };
    return {
      name: this.#name('create master'),
      command: make.createMaster({ ...base, ledgerId: ledger.id, masterId: randomUUID() }),
      attempt: async (node) => {
        return { kind: 'done', masterId: (await supplier.at(node).createMaster(request, options)).uuid };
      },
    };
  }

  closeMaster(ledger: LoadLedger, master: LoadMaster): Call {
    const { supplier } = this.#world;
    const { options, base } = marked(supplier);
    return {
      name: this.#name('close master'),
      command: make.closeMaster({ ...base, ledgerId: ledger.id, masterId: master.id }),
      attempt: async (node) => {
        await supplier.at(node).closeMaster({ uuid: master.id }, options);
        return { kind: 'done', masterId: master.id };
      },
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
