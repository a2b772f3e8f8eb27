import { randomUUID } from 'node:crypto';
import { afterMs } from '../../../cluster/local/ports.ts';
import { canonicalJson } from '../../../src/domain/canonical.ts';
import type { Command, Lane } from '../../../src/domain/command.ts';
import { commandId } from '../../../src/service/command-mark.ts';
import type { SeededRandom } from '../../simulation/random.ts';
import * as make from '../../support/commands.ts';
import { appendedType } from '../../support/history/history-check.ts';
import type { ClusterUnderTest } from '../rig/cluster-under-test.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import { type Answered, answeredBy, LoadHistory } from './load-history.ts';
import {
  businessRef,
  type LoadLedger,
  type LoadMaster,
  type LoadWorld,
  loadMaster,
  masterScope,
} from './load-world.ts';
import type { LoadParty } from './parties.ts';

/** From the first attempt to the last: what the client of the project takes by default. */
const callMaxMs = 30_000;
const retryPauseMs = [20, 250] as const;
/** So many are closed beside the open ones, and still written to. */
const closedKept = 1;

export interface LoadOptions {
  readonly cluster: ClusterUnderTest;
  readonly world: LoadWorld;
  readonly random: SeededRandom;
  readonly workers: number;
  /** Workers that append over a stream of their own. */
  readonly streams: number;
  /** What a worker rests at most between two calls. */
  readonly restMaxMs: number;
}

/** One thing to do, whoever tries it how often. */
interface Call {
  readonly name: string;
  readonly command: Command;
  attempt(node: NodeUnderTest): Promise<Answered>;
}

/** Callers that never stop: appends, also by delegates that may not, grants, revocations, masters that come and go, reads. */
export class Load {
  readonly history = new LoadHistory();
  readonly #options: LoadOptions;
  #running = true;
  #made = 0;
  #workers: Promise<void>[] = [];

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  start(): void {
    const { workers, streams } = this.#options;
    this.#workers = [
      ...Array.from({ length: workers }, () => this.#work(() => this.#anything())),
      ...Array.from({ length: streams }, () => this.#work(() => this.#stream())),
    ];
  }

  /** No new calls; resolves when those under way have ended. Rejects with what broke a worker. */
  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#workers);
  }

  async #work(step: () => Promise<unknown>): Promise<void> {
    while (this.#running) {
      await afterMs(this.#options.random.between(0, this.#options.restMaxMs));
      await step();
    }
  }

  /** One append by a party that may, sent until it is certain; answers how long that took, in milliseconds, or null. */
  async appendTo(ledger: LoadLedger, nodes: readonly NodeUnderTest[], attemptPauseMs = 20): Promise<number | null> {
    const master = this.#options.random.pick(ledger.masters.slice(closedKept));
    const began = performance.now();
    const told = await this.#carryOut(this.#append(ledger, master, this.#options.world.supplier), nodes, [
      0,
      attemptPauseMs,
    ]);
    return told.kind === 'written' || told.kind === 'refused' ? performance.now() - began : null;
  }

  async #anything(): Promise<void> {
    const { world, random, cluster } = this.#options;
    const ledger = random.pick(world.ledgers);
    const master = random.pick(ledger.masters);
    const delegate = random.pick(world.delegates);
    const kind = random.weighted({ append: 800, delegated: 90, grant: 30, revoke: 30, turnover: 4, look: 46 });
    switch (kind) {
      case 'append':
        await this.#carryOut(this.#append(ledger, master, random.pick([world.supplier, world.buyer])), cluster.nodes);
        return;
      case 'delegated':
        await this.#carryOut(this.#append(ledger, master, delegate), cluster.nodes);
        return;
      case 'grant':
        await this.#carryOut(this.#grant(ledger, master, delegate), cluster.nodes);
        return;
      case 'revoke':
        await this.#carryOut(this.#revoke(ledger, master, delegate), cluster.nodes);
        return;
      case 'turnover':
        return this.#turnOver(ledger);
      case 'look':
        return this.#look(ledger);
    }
  }

  async #carryOut(
    call: Call,
    nodes: readonly NodeUnderTest[],
    [pauseMin, pauseMax]: readonly [number, number] = retryPauseMs,
  ): Promise<Answered> {
    const { random } = this.#options;
    const begunMs = performance.now();
    for (;;) {
      const node = random.pick(nodes);
      const told = await this.#noted(call, node, () => call.attempt(node));
      if (told.kind !== 'unknown' && told.kind !== 'not_written') {
        const atMs = performance.now();
        if (told.kind === 'written') this.history.acknowledgements.push({ atMs, tookMs: atMs - begunMs });
        return told;
      }
      if (performance.now() - begunMs > callMaxMs) {
        this.history.failed.push({ name: call.name, begunMs, endedMs: performance.now(), last: told.kind });
        return told;
      }
      await afterMs(random.between(pauseMin, pauseMax));
    }
  }

  async #noted(
    call: Pick<Call, 'name' | 'command'>,
    node: NodeUnderTest,
    attempt: () => Promise<Answered>,
  ): Promise<Answered> {
    const { history } = this;
    const begun = history.tick();
    const beganMs = performance.now();
    let told: Answered;
    let words: string | null = null;
    try {
      told = await attempt();
    } catch (error) {
      words = String(error);
      told = answeredBy(error, history);
    }
    // Events of a lane may have been sent more than once by the time the stream gives up: the last error is that of the last time.
    if (call.command.lane && told.kind === 'not_written') told = { kind: 'unknown', code: 'disconnected' };
    const { name, command } = call;
    const endedMs = performance.now();
    history.calls.push({ name, command, node: node.id, begun, ended: history.tick(), told, beganMs, endedMs, words });
    return told;
  }

  #name(what: string): string {
    this.#made += 1;
    return `${what} ${this.#made}`;
  }

  #marked(party: LoadParty): {
    readonly key: string;
    readonly base: { readonly actorId: string; readonly marks: Command['marks'] };
  } {
    const key = randomUUID();
    return { key, base: { actorId: party.actorId, marks: [make.mark(commandId(party.actorId, key))] } };
  }

  #append(
    ledger: LoadLedger,
    master: LoadMaster,
    party: LoadParty,
    lane: Lane | null = null,
  ): Call & { readonly event: StreamEvent } {
    const name = this.#name('append');
    const { key, base } = this.#marked(party);
    const payload = { n: name, key };
    const event = { uuid: master.id, eventType: appendedType, payload };
    const stored = canonicalJson({ ...payload, ...master.injected });
    return {
      name,
      event: { ...event, idempotencyKey: key },
      command: make.append({ ...base, ledgerId: ledger.id, masterId: master.id, payload: stored, lane }),
      attempt: async (node) => written(await party.at(node).appendEvent(event, { idempotencyKey: key })),
    };
  }

  #grant(ledger: LoadLedger, master: LoadMaster, delegate: LoadParty): Call {
    const { supplier } = this.#options.world;
    const { key, base } = this.#marked(supplier);
    const request = {
      masterId: master.id,
      delegateActorId: delegate.actorId,
      role: 'OPS',
      permissions: { access: 'write' },
    };
    return {
      name: this.#name('grant'),
      command: make.grant({
        ...base,
        ledgerId: ledger.id,
        masterId: master.id,
        delegateActorId: delegate.actorId,
        access: 'write',
      }),
      attempt: async (node) => {
        await supplier.at(node).grantMasterDelegation(request, { idempotencyKey: key });
        return { kind: 'done', masterId: master.id };
      },
    };
  }

  #revoke(ledger: LoadLedger, master: LoadMaster, delegate: LoadParty): Call {
    const { supplier } = this.#options.world;
    const { key, base } = this.#marked(supplier);
    const request = { masterId: master.id, delegateActorId: delegate.actorId };
    return {
      name: this.#name('revoke'),
      command: make.revoke({ ...base, ledgerId: ledger.id, masterId: master.id, delegateActorId: delegate.actorId }),
      attempt: async (node) => {
        await supplier.at(node).revokeMasterDelegation(request, { idempotencyKey: key });
        return { kind: 'done', masterId: master.id };
      },
    };
  }

  /** A new master takes the place of the oldest, which is closed while others still write to it. */
  async #turnOver(ledger: LoadLedger): Promise<void> {
    const { cluster, world } = this.#options;
    const { supplier, buyer } = world;
    const made = this.#marked(supplier);
    let madeId = '';
    const request = { ledgerId: ledger.id, businessRef, scope: masterScope };
    const creation: Call = {
      name: this.#name('create master'),
      command: make.createMaster({ ...made.base, ledgerId: ledger.id, masterId: randomUUID() }),
      attempt: async (node) => {
        madeId = (await supplier.at(node).createMaster(request, { idempotencyKey: made.key })).uuid;
        return { kind: 'done', masterId: madeId };
      },
    };
    if ((await this.#carryOut(creation, cluster.nodes)).kind !== 'done') return;
    ledger.masters = [...ledger.masters, loadMaster(madeId, supplier.actorId, buyer.actorId)];
    const oldest = ledger.masters[closedKept];
    if (oldest === undefined) return;
    ledger.masters = ledger.masters.slice(1);
    const closed = this.#marked(supplier);
    await this.#carryOut(
      {
        name: this.#name('close master'),
        command: make.closeMaster({ ...closed.base, ledgerId: ledger.id, masterId: oldest.id }),
        attempt: async (node) => {
          await supplier.at(node).closeMaster({ uuid: oldest.id }, { idempotencyKey: closed.key });
          return { kind: 'done', masterId: oldest.id };
        },
      },
      cluster.nodes,
    );
  }

  async #look(ledger: LoadLedger): Promise<void> {
    const { world, random, cluster } = this.#options;
    const { history } = this;
    const begun = history.tick();
    try {
      const client = random.pick([world.supplier, world.buyer]).at(random.pick(cluster.nodes));
      const page = await client.listLedgerEvents({ ledgerId: ledger.id, limit: 1, order: 'desc' });
      const headSeq = page.events[0]?.seq ?? -1;
      if (page.integrity?.verified !== true)
        history.broken.push(`integrity of ${ledger.id}: ${JSON.stringify(page.integrity)}`);
      history.looks.push({ ledgerId: ledger.id, scope: '', begun, ended: history.tick(), headSeq, seqs: [] });
    } catch (error) {
      const told = answeredBy(error, history);
      if (told.kind === 'refused') history.broken.push(`a read by a party was refused: ${told.code}`);
    }
  }

  /** Events of one ledger over one stream, in order, until it fails for good or has had enough. */
  async #stream(): Promise<void> {
    const { world, random, cluster } = this.#options;
    const ledger = random.pick(world.ledgers);
    const node = random.pick(cluster.nodes);
    const { masters } = ledger;
    // The client learns the facts that it signs from before it streams: an event that they cannot be had for is left out of the stream.
    for (const master of masters) {
      const call = this.#append(ledger, master, world.supplier);
      const told = await this.#noted(call, node, () => call.attempt(node));
      if (told.kind !== 'written' && told.kind !== 'refused') return;
    }
    const stream = world.supplier.at(node).appendStream({ maxInFlight: 16, attemptsMax: 6 });
    const lane = randomUUID();
    const outcomes: Promise<Answered>[] = [];
    let isOver = false;
    for (let index = 0; index < 400 && this.#running && !isOver; index++) {
      await Promise.race([stream.ready(), Promise.allSettled(outcomes)]);
      const previous = index === 0 ? null : index - 1;
      const master = random.pick(random.chance(0.05) ? masters : masters.slice(closedKept));
      const call = this.#append(ledger, master, world.supplier, { id: lane, index, previous });
      const begunMs = performance.now();
      const outcome = this.#noted(call, node, async () => written(await stream.append(call.event)));
      outcomes.push(outcome);
      outcome.then(
        ({ kind }) => {
          const atMs = performance.now();
          if (kind === 'written') this.history.acknowledgements.push({ atMs, tookMs: atMs - begunMs });
          else if (kind !== 'refused') isOver = true;
        },
        // Told to whoever awaits all of them.
        () => {},
      );
      await afterMs(random.between(0, this.#options.restMaxMs));
    }
    await Promise.all(outcomes);
    await stream.close();
  }
}

interface StreamEvent {
  readonly uuid: string;
  readonly eventType: string;
  readonly payload: { readonly n: string; readonly key: string };
  readonly idempotencyKey: string;
}

function written(answer: {
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
