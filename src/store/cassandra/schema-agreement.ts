import type cassandra from 'cassandra-driver';
import { StartError } from '../start-error.ts';

/**
 * How long nodes may take to agree. A node that missed a change asks the others for it only a minute later, by Cassandra's default, and
 * one that starts on a busy machine takes minutes. Where all is well it is a moment.
 */
export const agreedMaxMs = 240_000;
const pollMs = 200;

/** A node of Cassandra, as another one and the driver see it. */
export interface SchemaNode {
  /** As `nodetool status` names it. */
  readonly address: string;
  readonly dataCenter: string;
  readonly version: string;
  readonly isUp: boolean;
}

/** All nodes that the one that is asked knows of, itself included. May reject where none can be asked just now. */
export type ReadSchemaNodes = () => Promise<readonly SchemaNode[]>;

/** A wait that ends some time. */
export interface Wait {
  isOver(): boolean;
  pause(ms: number): Promise<void>;
}

/** A wait of so many milliseconds, from now. */
export function waitOf(maxMs: number): Wait {
  const late = AbortSignal.timeout(maxMs);
  return { isOver: () => late.aborted, pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) };
}

/**
 * Resolves when every node has the same schema. One that is down keeps the version it had and holds this up: it would not know the tables.
 * StartError after four minutes: it names the nodes that differ, and says what to do about them.
 */
export async function untilAgreed(read: ReadSchemaNodes, wait: Wait = waitOf(agreedMaxMs)): Promise<void> {
  for (;;) {
    // A node that is too busy to say so has not agreed yet.
    const nodes = await read().catch(() => []);
    if (new Set(nodes.map(({ version }) => version)).size === 1) return;
    if (wait.isOver()) throw new StartError(disagreement(nodes));
    await wait.pause(pollMs);
  }
}

function disagreement(nodes: readonly SchemaNode[]): string {
  const waited = `The nodes of Cassandra did not agree on a schema within ${agreedMaxMs / 60_000} minutes`;
  const byVersion = Map.groupBy(nodes, ({ version }) => version);
  const [most, ...others] = [...byVersion.values()].sort((some, more) => more.length - some.length);
  if (most === undefined)
    return `${waited}: none of them answers. See by \`nodetool status\` which are down, start those, then apply again.`;
  const told = ({ address, version, isUp }: SchemaNode) => `${address} has ${version}${isUp ? '' : ' and is down'}`;
  const differing = others.flat().map(told).join(', ');
  return `${waited}: ${differing}; the others have ${most[0]?.version}. Start what is down, restart what runs and does not follow, or take out what is gone for good (\`nodetool removenode\`), then apply again.`;
}

/** As one node sees it: all rows are of the same moment, and of the same view. */
export function schemaNodesOf(client: cassandra.Client): ReadSchemaNodes {
  const isUp = (address: string) =>
    client.hosts
      .values()
      .filter((host) => host.address.startsWith(`${address}:`))
      .every((host) => host.isUp());
  return async () => {
    const [host] = client.getState().getConnectedHosts();
    const options = host === undefined ? {} : { host };
    const local = 'SELECT listen_address AS node, rpc_address, data_center, schema_version FROM system.local';
    const peers = 'SELECT peer AS node, rpc_address, data_center, schema_version FROM system.peers';
    const answers = [await client.execute(local, [], options), await client.execute(peers, [], options)];
    return (
      answers
        .flatMap(({ rows }) => rows)
        // A node that has just begun to join has no schema, and takes the one there is.
        .filter(({ schema_version }) => schema_version !== null)
        .map(({ node, rpc_address, data_center, schema_version }) => ({
          address: String(node),
          dataCenter: String(data_center),
          version: String(schema_version),
          isUp: isUp(String(rpc_address)),
        }))
    );
  };
}
