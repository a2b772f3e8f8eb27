import { expect, test, vi } from 'vitest';
import { JsonReader } from '../../../../src/domain/json/json-reader.ts';
import type { UnkeyedCommand } from '../../../../src/domain/ledger/command.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { EventAppender } from '../../../../src/service/masters/append-event.ts';
import { buyer, ledgerId, masterId } from '../../../support/commands.ts';

const facts = { masterId, businessRef: 'PO-1', scope: 'ORDER' };
const ledger = { ledgerId, type: 'ENGAGEMENT' };

/** Returns the command that an event of a stream with this delivery chain becomes. */
async function commandOf(payload: string, deliveryChain: string | null): Promise<UnkeyedCommand> {
  let command: UnkeyedCommand | null = null;
  const parts = [
    { known: () => ({ actorId: buyer, keys: [] }) },
    { readableMaster: async () => ({ facts, ledger }) },
    { prepareOnce: async (_call: Call, _ledgerOf: unknown, made: Promise<UnkeyedCommand>) => (command = await made) },
  ] as unknown as ConstructorParameters<typeof EventAppender>;
  const call = { caller: { actorId: buyer, mustSign: false }, signature: null, deliveryChain };
  const request = { uuid: masterId, eventType: 'NOTED', payload };
  await new EventAppender(...parts).prepare(call as unknown as Call, request, undefined);
  if (command === null) throw new Error('no command was made');
  return command;
}

test('a delivery chain is added in canonical order, and payload and chain are parsed once each', async () => {
  const parsed = vi.spyOn(JsonReader.prototype, 'readAll');
  const chain = [{ role: 'carrier', actor_id: buyer, actor_type: 'human' }];
  const command = await commandOf('{"z":1,"a":2,"e":3}', JSON.stringify(chain));
  expect(parsed).toHaveBeenCalledTimes(2);
  const delivered = `[{"actor_id":"${buyer}","actor_type":"human","role":"carrier"}]`;
  expect(command).toMatchObject({
    payload:
      `{"a":2,"business_ref":"PO-1","delivery_chain":${delivered},"e":3,"scope":"ORDER",` +
      `"traceledger_master_uuid":"${masterId}","z":1}`,
  });
});
