import { setTimeout } from 'node:timers/promises';
import type cassandra from 'cassandra-driver';
import { StartError } from '../../../runtime/start-error.ts';

/** A node that missed a change asks for it only a minute later, and one that starts on a busy machine takes minutes. */
const agreedMaxMs = 240_000;
const pollMs = 200;

/** A node of Cassandra, as another node and the driver see it. */
export interface SchemaNode {
  /** The address that `nodetool status` shows. */
  readonly address: string;
  readonly dataCenter: string;
  readonly version: string;
  readonly isUp: boolean;
}

/** All nodes that one connected node knows of, including itself. May reject if no node can be asked. */
export type ReadSchemaNodes = () => Promise<readonly SchemaNode[]>;

export interface Wait {
  readonly maxMs: number;
  isOver(): boolean;
  pause(ms: number): Promise<void>;
}

/** A wait that is over `maxMs` milliseconds from now. */
export function waitOf(maxMs: number): Wait {
  const late = AbortSignal.timeout(maxMs);
  return { maxMs, isOver: () => late.aborted, pause: setTimeout };
}

/**
 * Resolves when every node has the same schema. A node that is down blocks this: it would not know the new tables. When
 * the wait is over, throws StartError with the nodes that differ and what to do about them.
 */
export async function untilAgreed(read: ReadSchemaNodes, wait: Wait = waitOf(agreedMaxMs)): Promise<void> {
  for (;;) {
    // If no node answers, they have not agreed yet.
    const nodes = await read().catch(() => []);
    if (new Set(nodes.map(({ version }) => version)).size === 1) return;
    if (wait.isOver()) throw new StartError(disagreement(nodes, wait.maxMs));
    await wait.pause(pollMs);
  }
}

function disagreement(nodes: readonly SchemaNode[], waitedMs: number): string {
  const time = waitedMs < 60_000 ? `${waitedMs / 1_000} seconds` : `${waitedMs / 60_000} minutes`;
  const waited = `The nodes of Cassandra did not agree on a schema within ${time}`;
  const byVersion = Map.groupBy(nodes, ({ version }) => version);
  const [most, ...others] = [...byVersion.values()].sort((some, more) => more.length - some.length);
  if (most === undefined)
    return `${waited}: none of them answers. See by \`nodetool status\` which are down, start those, then apply again.`;
  const stateOf = ({ address, version, isUp }: SchemaNode) => `${address} has ${version}${isUp ? '' : ' and is down'}`;
  const differing = others.flat().map(stateOf).join(', ');
  return `${waited}: ${differing}; the others have ${most[0]?.version}. Start what is down, restart what runs and does not follow, or take out what is gone for good (\`nodetool removenode\`), then apply again.`;
}

/** Reads both system tables from one node, so that the rows are one node's view. */
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
        // A node that has just begun to join has no schema yet, and takes the existing one.
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
