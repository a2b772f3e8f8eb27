import { afterMs } from '../../../cluster/local/ports.ts';
import type { SeededRandom } from '../../simulation/random.ts';
import type { ClusterUnderTest } from '../rig/cluster-under-test.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import { type Call, LoadCalls } from './calls.ts';
import { runLane } from './lane.ts';
import { type Answered, answeredBy, isCertain, LoadHistory, noted } from './load-history.ts';
import { closedKept, type LoadLedger, type LoadWorld, loadMaster } from './load-world.ts';
import type { OneAddress } from './parties.ts';
import { startUsualCallers, type UsualCallers } from './usual-callers.ts';

/** The pause between two attempts. */
type Pause = readonly [minMs: number, maxMs: number];
const retryPauseMs: Pause = [20, 250];

interface LoadOptions {
  readonly cluster: ClusterUnderTest;
  readonly world: LoadWorld;
  readonly random: SeededRandom;
  readonly workers: number;
  /** Further workers, which append over streams. */
  readonly streams: number;
  /** The longest rest of a worker between two calls. */
  readonly restMaxMs: number;
}

/** Endless callers: appends, also without permission, grants, revocations, masters and reads. */
export class Load {
  readonly history = new LoadHistory();
  readonly #options: LoadOptions;
  readonly #calls: LoadCalls;
  readonly #underWay = new Set<Promise<unknown>>();
  #running = true;
  #workers: Promise<void>[] = [];

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#calls = new LoadCalls(options.world);
  }

  start(): void {
    const { workers, streams } = this.#options;
    this.#workers = [
      ...Array.from({ length: workers }, () => this.#work(() => this.#anything())),
      ...Array.from({ length: streams }, () => this.#work(() => this.#lane())),
    ];
  }

  /** Starts no new calls, and resolves when those under way have ended. Rejects with the error of a worker. */
  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#workers);
  }

  /** Resolves when all calls that are under way now have ended. */
  async settled(): Promise<void> {
    await Promise.all([...this.#underWay]);
  }

  async #work(step: () => Promise<unknown>): Promise<void> {
    while (this.#running) {
      await afterMs(this.#options.random.between(0, this.#options.restMaxMs));
      await step();
    }
  }

  /** Repeats a permitted append until it is certain. Resolves with the milliseconds that took, or null if given up. */
  async appendTo(ledger: LoadLedger, nodes: readonly NodeUnderTest[], attemptPauseMs = 20): Promise<number | null> {
    const { random, world } = this.#options;
    const call = this.#calls.append(ledger, random.pick(ledger.masters.slice(closedKept)), world.supplier);
    const began = performance.now();
    const result = await this.#carryOut(call, nodes, [0, attemptPauseMs]);
    return isCertain(result) ? performance.now() - began : null;
  }

  /** Sends a permitted append once. */
  async appendOnce(ledger: LoadLedger, node: NodeUnderTest): Promise<{ result: Answered; tookMs: number }> {
    const { random, world } = this.#options;
    const call = this.#calls.append(ledger, random.pick(ledger.masters.slice(closedKept)), world.supplier);
    const began = performance.now();
    const result = await noted(this.history, call, node, () => call.attempt(node));
    return { result, tookMs: performance.now() - began };
  }

  /** Starts callers that use one address and the default client. */
  callThrough(address: OneAddress): UsualCallers {
    const { world, random, restMaxMs } = this.#options;
    return startUsualCallers({ calls: this.#calls, history: this.history, world, random, restMaxMs, address });
  }

  async #anything(): Promise<void> {
    const { world, random, cluster } = this.#options;
    const { nodes } = cluster;
    const calls = this.#calls;
    const ledger = random.pick(world.ledgers);
    const master = random.pick(ledger.masters);
    const delegate = random.pick(world.delegates);
    const kind = random.weighted({ append: 800, delegated: 90, grant: 30, revoke: 30, turnover: 4, look: 46 });
    switch (kind) {
      case 'append':
        await this.#carryOut(calls.append(ledger, master, random.pick([world.supplier, world.buyer])), nodes);
        return;
      case 'delegated':
        await this.#carryOut(calls.append(ledger, master, delegate), nodes);
        return;
      case 'grant':
        await this.#carryOut(calls.grant(ledger, master, delegate), nodes);
        return;
      case 'revoke':
        await this.#carryOut(calls.revoke(ledger, master, delegate), nodes);
        return;
      case 'turnover':
        return this.#turnOver(ledger);
      case 'look':
        return this.#look(ledger);
    }
  }

  #carryOut(call: Call, nodes: readonly NodeUnderTest[], pauseMs: Pause = retryPauseMs): Promise<Answered> {
    const result = this.#tryUntilCertain(call, nodes, pauseMs);
    this.#begun(result);
    return result;
  }

  #begun(call: Promise<unknown>): void {
    const ended: Promise<unknown> = Promise.allSettled([call]).then(() => this.#underWay.delete(ended));
    this.#underWay.add(ended);
  }

  async #tryUntilCertain(call: Call, nodes: readonly NodeUnderTest[], [pauseMin, pauseMax]: Pause): Promise<Answered> {
    const { random } = this.#options;
    const { history } = this;
    const begunMs = performance.now();
    for (;;) {
      const node = random.pick(nodes);
      const result = await noted(history, call, node, () => call.attempt(node));
      const endedMs = performance.now();
      if (isCertain(result)) {
        if (result.kind === 'written') history.acknowledgements.push({ atMs: endedMs, tookMs: endedMs - begunMs });
        return result;
      }
      if (history.isInVain(begunMs)) {
        history.noteFailed(call.name, begunMs);
        return result;
      }
      await afterMs(random.between(pauseMin, pauseMax));
    }
  }

  /** Makes a master and closes the oldest open one, while others still write to it. */
  async #turnOver(ledger: LoadLedger): Promise<void> {
    const { cluster, world } = this.#options;
    const created = await this.#carryOut(this.#calls.createMaster(ledger), cluster.nodes);
    if (created.kind !== 'done' || created.masterId === null) return;
    const master = loadMaster(created.masterId, world.supplier.actorId, world.buyer.actorId);
    ledger.masters = [...ledger.masters, master];
    const oldest = ledger.masters[closedKept];
    if (oldest === undefined) return;
    ledger.masters = ledger.masters.slice(1);
    await this.#carryOut(this.#calls.closeMaster(ledger, oldest), cluster.nodes);
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
      history.noteBroken(error);
      const result = answeredBy(error);
      if (result.kind === 'refused') history.broken.push(`a read by a party was refused: ${result.code}`);
    }
  }

  #lane(): Promise<void> {
    const { world, random, cluster, restMaxMs } = this.#options;
    return runLane({
      calls: this.#calls,
      history: this.history,
      random,
      ledger: random.pick(world.ledgers),
      party: world.supplier,
      nodes: cluster.nodes,
      restMaxMs,
      isRunning: () => this.#running,
      begun: (ended) => this.#begun(ended),
    });
  }
}
