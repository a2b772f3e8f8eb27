import type { Registry } from 'prom-client';
import { isoTime } from '../../domain/values/time.ts';
import { metricsIn } from '../../runtime/telemetry/metrics.ts';
import { type Authority, openAuthority, signOlderList } from '../../service/authority/authority.ts';
import { watchAuthority } from '../../service/authority/authority-watch.ts';
import type { BehindLogs } from '../../service/log-identity/behind-logs.ts';
import { type LogIdentity, openLogIdentity } from '../../service/log-identity/log-identity.ts';
import { watchLog } from '../../service/log-identity/log-watch.ts';
import { createSecretBox, type SecretBox } from '../../service/records/secret-box.ts';
import { checkSecretsKey } from '../../service/records/secrets-key-check.ts';
import type { NodeContext } from './context.ts';

interface NodeAuthority extends Disposable {
  readonly secrets: SecretBox;
  readonly authority: Authority;
  readonly logIdentity: LogIdentity;
}

/** Opens what the node's keys are for. Throws ConfigError or StartError. */
export async function openNodeAuthority(node: NodeContext): Promise<NodeAuthority> {
  const { config, records, keys, stamp, clock, log, membership } = node;
  const secrets = createSecretBox(keys.secrets, node.random);
  await checkSecretsKey(records, secrets);
  const authority = await openAuthority(records, keys.authority, isoTime(node.now()));
  const logIdentity = await openLogIdentity({
    ...{ records, stamp, logKey: keys.log, authorityKey: keys.authority, origin: config.logOrigin },
    nowIso: isoTime(node.now()),
    random: node.random,
  });
  await signOlderList(records, keys.authority);
  if (logIdentity.behind.store) log.warn({ origin: logIdentity.serviceName }, restoredCopy);
  meterBehindLogs(node.metrics.registry, logIdentity.behind);
  const warn = (what: string, error?: unknown) => log.warn({ err: error }, what);
  // A single node has its store to itself: nobody else can change its keys.
  const watches =
    membership === undefined
      ? []
      : [watchAuthority({ records, authority, clock, warn }), watchLog({ records, logIdentity, clock, warn })];
  for (const watch of watches) await watch.start();
  const stop = () => {
    for (const watch of watches) watch.stop();
  };
  return { secrets, authority, logIdentity, [Symbol.dispose]: stop };
}

const restoredCopy =
  'the store was restored from a copy, so no checkpoint is signed: what was signed since the copy was made could be contradicted. Stop all nodes, then run `ledger-trust log new-origin NAME`, or `ledger-trust log keep` if nothing was signed since (in a cluster `cluster log …`)';

export function meterBehindLogs(registry: Registry, behind: BehindLogs): void {
  metricsIn(registry).readGauge({
    name: 'svc_log_behind',
    help: 'The store (0 or 1), and how many ledger and master logs, that lack events which were signed: nothing is signed for them.',
    label: 'kind',
    read: () => ({ store: behind.count('store'), ledger: behind.count('ledger'), master: behind.count('master') }),
  });
}
