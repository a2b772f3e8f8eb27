import { refuseOldNode } from '../src/runtime/node-version.ts';

refuseOldNode(process.version);
const { serveInCluster } = await import('./serve.ts');
// Exits although timers of the drivers may still be pending: none of their work matters any more.
process.exit(await serveInCluster(process.env));
