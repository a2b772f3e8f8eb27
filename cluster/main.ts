import { refuseOldNode } from '../src/runtime/node-version.ts';

refuseOldNode(process.version);
// Loading the service takes a second. A signal in that time must not be lost.
const { hearStopSignals } = await import('../src/cli/terminal/stop-signals.ts');
const signals = hearStopSignals(process);
const { serveInCluster } = await import('./serve.ts');
// Exits although timers of the drivers may still be pending: none of their work matters any more.
process.exit(await serveInCluster(process.env, signals));
