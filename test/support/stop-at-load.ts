import { registerHooks } from 'node:module';

let isSent = false;

/** A program that loads this module first, by `--import`, gets SIGTERM when it begins to load the service. */
registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier.endsWith('/serve.ts') && !isSent) {
      isSent = true;
      process.kill(process.pid, 'SIGTERM');
    }
    return nextResolve(specifier, context);
  },
});
