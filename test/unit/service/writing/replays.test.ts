import { expect, test } from 'vitest';
import type { Directory } from '../../../../src/actors/routing/directory.ts';
import { type ErrorCode, LedgerError } from '../../../../src/domain/errors.ts';
import type { Command } from '../../../../src/domain/ledger/command.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { Replays } from '../../../../src/service/writing/replays.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';

const mark = { id: 'mark', fingerprint: 'f', permanent: false };
const call = { command: mark } as unknown as Call;
const away = new LedgerError('unavailable', 'The store cannot be reached; nothing was written.');
const replays = new Replays({ findCommands: () => Promise.reject(away) } as unknown as LedgerStore);
const failed = (code: ErrorCode) => () => Promise.reject(new LedgerError(code, 'first'));

test.each<ErrorCode>(['outcome_unknown', 'idempotency_in_progress', 'internal'])(
  'a call that ended with %s is not called unwritten because the store is away when its first answer is looked for',
  async (code) => {
    await expect(replays.orElse(call, async () => 'ledger', failed(code))).rejects.toMatchObject({ code });
  },
);

test('a call that was refused is not refused for good while its first answer cannot be looked for', async () => {
  const refused = replays.orElse(call, async () => 'ledger', failed('permission_denied'));
  await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
});

test('a call whose twin is running is told so, also where the store is away', async () => {
  const directory = { submit: failed('idempotency_in_progress') } as unknown as Directory;
  const command = { ledgerId: 'ledger', commandKeys: [mark] } as unknown as Command;
  await expect(replays.carryOut(directory, command)).rejects.toMatchObject({ code: 'idempotency_in_progress' });
});
