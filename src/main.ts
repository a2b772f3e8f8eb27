import { refuseOldNode } from './runtime/node-version.ts';

refuseOldNode(process.version);
const { serve } = await import('./cli/serve.ts');
// Ends what is still open (output that no reader takes, a driver's timers): nothing of it is needed.
process.exit(await serve(process.env));
