import { subscribe } from 'node:diagnostics_channel';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Loaded before a node starts (--import): until the file `upgraded` stands in its data directory when it starts, the
 * node is like one of a version without ProofService. It answers proof calls as unknown routes, so it signs nothing and
 * makes no tiles.
 */
const upgradedName = 'upgraded';

const paths = /\/(checkpoint|proof\/(inclusion|consistency))(\?|$)/;

if (!existsSync(join(process.env.DATA_DIR ?? '', upgradedName)))
  subscribe('http.server.request.start', (message) => {
    const { request } = message as { readonly request: { url?: string } };
    if (paths.test(request.url ?? '')) request.url = '/v1/unknown';
  });
