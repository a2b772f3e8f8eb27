import type cassandra from 'cassandra-driver';

/** The driver's connection to the node that it learns the other nodes from (lib/control-connection.js). */
interface ControlConnection {
  /** Searches for a node to connect to. `left` has the nodes that are left if a search goes on. */
  _refresh(left?: Iterator<cassandra.Host>): Promise<void>;
}

export function controlConnectionOf(client: cassandra.Client): ControlConnection {
  return (client as unknown as { readonly controlConnection: ControlConnection }).controlConnection;
}

/**
 * Makes the driver run one search for a control connection at a time. After an outage the driver watches its new
 * control connection twice. The loss of that connection then begins two searches that take the node away from each
 * other, and an uncaught TypeError ends the process (driver 4.10.0, its issue NODEJS-681).
 */
export function searchOnceAtATime(control: ControlConnection): void {
  const refresh = control._refresh.bind(control);
  let searching: Promise<void> | null = null;
  control._refresh = (left) => {
    if (left !== undefined) return refresh(left);
    searching ??= refresh().finally(() => {
      searching = null;
    });
    return searching;
  };
}
