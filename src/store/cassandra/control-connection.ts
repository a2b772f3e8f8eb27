import type cassandra from 'cassandra-driver';

/** What the driver has for its connection to a node that tells of the others (lib/control-connection.js). */
export interface ControlConnection {
  /** Looks for another one; with the nodes that are left, where a search goes on that has begun. */
  _refresh(left?: Iterator<cassandra.Host>): Promise<void>;
}

export function controlConnectionOf(client: cassandra.Client): ControlConnection {
  return (client as unknown as { readonly controlConnection: ControlConnection }).controlConnection;
}

/**
 * Has the driver search for a control connection once at a time. One that it had to make anew behind an outage is watched twice, so that
 * its loss begins two searches, each of which takes the node away from under the other: a TypeError that nobody catches ends the
 * process (driver 4.10.0, its issue NODEJS-681).
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
