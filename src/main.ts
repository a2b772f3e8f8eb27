import { serve } from './cli/serve.ts';

// What is left by then (output that nobody reads, a driver's timers) has nothing more to say.
process.exit(await serve(process.env));
