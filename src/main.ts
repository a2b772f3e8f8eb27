import { refuseOldNode } from './runtime/node-version.ts';

refuseOldNode(process.version);
// Loading the service takes a second. A signal in that time must not be lost.
const { hearStopSignals } = await import('./cli/terminal/stop-signals.ts');
const signals = hearStopSignals(process);
const { serve } = await import('./cli/serve.ts');
// Ends what is still open (output that no reader takes, a driver's timers): nothing of it is needed.
process.exit(await serve(process.env, signals));
