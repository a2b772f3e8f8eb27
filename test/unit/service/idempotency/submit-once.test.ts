import { expect, test } from 'vitest';
import type { Directory } from '../../../../src/actors/routing/directory.ts';
import { type ErrorCode, LedgerError } from '../../../../src/domain/errors.ts';
import type { UnkeyedCommand } from '../../../../src/domain/ledger/command.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { OnceSubmitter } from '../../../../src/service/idempotency/submit-once.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';

const call = {
  caller: { actorId: 'actor', actorType: 'human', via: 'api_key', mustSign: false },
  commandKey: { id: 'key', fingerprint: 'f', permanent: false },
} as unknown as Call;
const away = new LedgerError('unavailable', 'The store cannot be reached; nothing was written.');
const store = { findCommands: () => Promise.reject(away) } as unknown as LedgerStore;
const failed = (code: ErrorCode) => () => Promise.reject(new LedgerError(code, 'first'));
const options = { ledgerOf: async () => 'ledger', isSignedEvent: true };

/** Submits the call's command to a ledger that ends it with an error, while the store cannot be read. */
function submit(code: ErrorCode) {
  const directory = { submit: failed(code) } as unknown as Directory;
  const command = { ledgerId: 'ledger', signature: null } as unknown as UnkeyedCommand;
  return new OnceSubmitter(directory, store).submitOnce(call, options, async () => command);
}

test.each<ErrorCode>(['outcome_unknown', 'idempotency_in_progress', 'internal'])(
  'a call that ended with %s is not called unwritten because the store is away when its first answer is looked for',
  async (code) => {
    await expect(submit(code)).rejects.toMatchObject({ code });
  },
);

test('a call that was refused is not refused for good while its first answer cannot be looked for', async () => {
  const submitter = new OnceSubmitter({} as Directory, store);
  const refused = submitter.submitOnce(call, options, failed('permission_denied'));
  await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
});
