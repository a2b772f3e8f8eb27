import { serveInCluster } from './serve.ts';

// What is left by then (a driver's timers) has nothing more to say.
process.exit(await serveInCluster(process.env));
