import { isoTime } from '../../domain/values/time.ts';
import { type Authority, openAuthority } from '../../service/authority/authority.ts';
import { AuthorityWatch } from '../../service/authority/authority-watch.ts';
import { createSecretBox, type SecretBox } from '../../service/records/secret-box.ts';
import { checkSecretsKey } from '../../service/records/secrets-key-check.ts';
import type { NodeContext } from './context.ts';

interface NodeAuthority extends Disposable {
  readonly secrets: SecretBox;
  readonly authority: Authority;
}

/** Opens what the node's keys are for. Throws ConfigError or StartError. */
export async function openNodeAuthority(node: NodeContext): Promise<NodeAuthority> {
  const { records, keys, clock, log, membership } = node;
  const secrets = createSecretBox(keys.secrets, node.random);
  await checkSecretsKey(records, secrets);
  const authority = await openAuthority(records, keys.authority, isoTime(node.now()));
  const warn = (what: string, error?: unknown) => log.warn({ err: error }, what);
  // A single node has its store to itself: no other node can change the key.
  const watch = membership === undefined ? null : new AuthorityWatch({ records, authority, clock, warn });
  await watch?.start();
  return { secrets, authority, [Symbol.dispose]: () => watch?.stop() };
}
