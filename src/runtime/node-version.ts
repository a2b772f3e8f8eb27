/** The oldest Node that the service runs on, as package.json says. */
export const NODE_MAJOR_MIN = 24;

/**
 * Ends the process with one sentence if this Node is too old. Mains call it before they load anything else: what they
 * load needs modules and syntax that an older Node does not have.
 */
export function refuseOldNode(version: string, end: (message: string) => never = endProcess): void {
  if (Number.parseInt(version.replace('v', ''), 10) >= NODE_MAJOR_MIN) return;
  end(`ledger-trust: Node ${NODE_MAJOR_MIN} or later is needed, and this is Node ${version.replace('v', '')}.`);
}

function endProcess(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
