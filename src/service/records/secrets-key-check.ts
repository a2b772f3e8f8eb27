import { ConfigError } from '../../runtime/start-error.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { SecretBox } from './secret-box.ts';

const kind = 'node';
const id = 'secrets-key';

export async function hasSecretsKey(records: RecordStore): Promise<boolean> {
  return (await records.get(kind, id)) !== null;
}

/** Stores the fingerprint of the secrets key in a new store. Throws ConfigError if the store has another one. */
export async function checkSecretsKey(records: RecordStore, box: SecretBox): Promise<void> {
  const write = { kind, id, replaces: 'absent', value: JSON.stringify(box.fingerprint), lookups: [] };
  const put = await records.put(write);
  if (!put.ok && put.current?.value !== write.value)
    throw new ConfigError(
      'SECRETS_KEY_FILE holds another key than the one that this store was made with: give the node the right key.',
    );
}
