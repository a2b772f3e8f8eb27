import { expect, test } from 'vitest';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { append, createMaster, openLedger } from '../../support/commands.ts';
import { codeOf, faultsOf, rig } from '../../support/world.ts';

/** Commands that no decoder lets through; each would make a row that is no event, or another one. */
const poison: readonly (readonly [string, Command])[] = [
  ['a line break in its payload', append({ payload: '{}\n{}' })],
  ['an actor that is no text', append({ actorId: 7 as unknown as string })],
  ['an event type that is no text', append({ eventType: { x: 1 } as unknown as string })],
  [
    'a name that is no text',
    append({ commandKeys: [{ id: 7 as unknown as string, fingerprint: 'f', permanent: false }] }),
  ],
];

test.each(poison)('a command with %s is not written, and its ledger goes on', async (_, command) => {
  const world = rig();
  const directory = world.directory({ checksRows: true });
  await directory.submit(openLedger());
  await directory.submit(createMaster());
  expect(await codeOf(directory.submit(command))).not.toBe('carried out');
  expect((await directory.submit(append())).event.seq).toBe(3);
  // It can be loaded anew, and is whole.
  const again = rig({ data: world.data }).directory();
  expect((await again.submit(append())).event.seq).toBe(4);
  expect(faultsOf(await world.log())).toEqual([]);
});
