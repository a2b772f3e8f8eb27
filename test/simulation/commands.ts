import type { Command, Lane } from '../../src/domain/ledger/command.ts';
import * as make from '../support/commands.ts';
import type { SeededRandom } from './random.ts';

export const ledgerIds: readonly string[] = [make.uuid(0x1001), make.uuid(0x1002)];
const delegates: readonly string[] = [make.uuid(0xd1), make.uuid(0xd2)];

/** The masters that a ledger has from its beginning; more come to be. */
export function firstMasters(ledgerId: string): readonly string[] {
  return [`${ledgerId.slice(0, -6)}a1${ledgerId.slice(-4)}`, `${ledgerId.slice(0, -6)}a2${ledgerId.slice(-4)}`];
}

export interface Wanted {
  readonly name: string;
  readonly command: Command;
}

/** What a grant gives and a revocation takes back. */
interface Access {
  readonly ledgerId: string;
  readonly masterId: string;
  readonly scope: 'ledger' | 'master';
  readonly delegateActorId: string;
}

/** What clients want done, one after the other; each differs from all others. */
export class Wishes {
  readonly #random: SeededRandom;
  readonly #masters = new Map(ledgerIds.map((id) => [id, [...firstMasters(id)]]));
  #made = 0;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  get made(): number {
    return this.#made;
  }

  /** What has to be there first, in order. */
  opening(deadline: number): Wanted[] {
    return ledgerIds.flatMap((ledgerId) => {
      const base = { ledgerId, deadline };
      const all = [
        make.openLedger(base),
        ...firstMasters(ledgerId).map((masterId) => make.createMaster({ ...base, masterId })),
      ];
      return all.map((command) => this.#named(command, true));
    });
  }

  masterOf(ledgerId: string): string {
    return this.#random.pick(this.#masters.get(ledgerId) ?? []);
  }

  next(deadline: number): Wanted {
    const random = this.#random;
    const ledgerId = random.pick(ledgerIds);
    const masterId = this.masterOf(ledgerId);
    const base = { ledgerId, deadline };
    const kind = random.weighted({ append: 50, delegated: 25, grant: 9, revoke: 9, close_master: 1, create_master: 2 });
    switch (kind) {
      case 'append':
        return this.append(ledgerId, masterId, make.supplier, deadline, null);
      case 'delegated':
        return this.append(ledgerId, masterId, random.pick(delegates), deadline, null);
      case 'grant':
        return this.grant(this.access(), deadline);
      case 'revoke':
        return this.revoke(this.access(), deadline);
      case 'close_master':
        return this.#named(make.closeMaster({ ...base, masterId }), true);
      case 'create_master': {
        const created = make.uuid(0x7000_0000 + this.#made);
        this.#masters.get(ledgerId)?.push(created);
        return this.#named(make.createMaster({ ...base, masterId: created }), true);
      }
    }
  }

  /** Of some delegate to some ledger or master. */
  access(): Access {
    const random = this.#random;
    const ledgerId = random.pick(ledgerIds);
    const scope = random.chance(0.3) ? 'ledger' : 'master';
    return { ledgerId, masterId: this.masterOf(ledgerId), scope, delegateActorId: random.pick(delegates) };
  }

  grant(access: Access, deadline: number): Wanted {
    const linkId = make.uuid(0x5000_0000 + this.#made);
    return this.#named(make.grant({ ...access, deadline, linkId, access: 'write' }), true);
  }

  revoke(access: Access, deadline: number): Wanted {
    return this.#named(make.revoke({ ...access, deadline }), true);
  }

  append(ledgerId: string, masterId: string, actorId: string, deadline: number, lane: Lane | null): Wanted {
    const payload = `{"n":${this.#made}}`;
    const isKeyed = lane === null && this.#random.chance(0.5);
    return this.#named(make.append({ ledgerId, masterId, actorId, payload, deadline, lane }), isKeyed);
  }

  #named(command: Command, isKeyed: boolean): Wanted {
    const name = `${command.kind} ${this.#made++}`;
    return { name, command: isKeyed ? { ...command, commandKeys: [make.commandKey(name)] } : command };
  }
}
