import cassandra from 'cassandra-driver';

type Plan = Iterator<cassandra.Host>;
type PlanCallback = (error: Error, plan: Plan) => void;

const { LoadBalancingPolicy } = cassandra.policies.loadBalancing;

/** How long a node that did not answer a statement is tried last, ms: it is slow, paused or cut off. */
const avoidMs = 5_000;

/**
 * Query plans of another policy, with nodes that did not answer moved to the end. A node that hangs keeps its
 * connections, so the driver alone would go on choosing it until many statements have timed out.
 */
export class AvoidingPolicy extends LoadBalancingPolicy {
  readonly #inner: cassandra.policies.loadBalancing.LoadBalancingPolicy;
  readonly #avoided = new Set<string>();

  constructor(inner: cassandra.policies.loadBalancing.LoadBalancingPolicy) {
    super();
    this.#inner = inner;
  }

  /** `address` in the driver's form, `ip:port`. */
  avoid(address: string): void {
    if (this.#avoided.has(address)) return;
    this.#avoided.add(address);
    setTimeout(() => this.#avoided.delete(address), avoidMs).unref();
  }

  override init(client: cassandra.Client, hosts: cassandra.HostMap, callback: cassandra.EmptyCallback): void {
    this.#inner.init(client, hosts, callback);
  }

  override getDistance(host: cassandra.Host): cassandra.types.distance {
    return this.#inner.getDistance(host);
  }

  override newQueryPlan(keyspace: string, options: cassandra.ExecutionOptions, callback: PlanCallback): void {
    this.#inner.newQueryPlan(keyspace, options, (error, plan) => {
      if (error || this.#avoided.size === 0) callback(error, plan);
      else callback(error, this.#reordered(plan));
    });
  }

  override getOptions(): Map<string, object> {
    return this.#inner.getOptions();
  }

  *#reordered(plan: Plan): Generator<cassandra.Host, undefined> {
    const last: cassandra.Host[] = [];
    for (let next = plan.next(); next.done !== true; next = plan.next()) {
      if (this.#avoided.has(next.value.address)) last.push(next.value);
      else yield next.value;
    }
    yield* last;
    return undefined;
  }
}
