import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { newOrganization } from '../support/organizations.ts';
import {
  append,
  closeOf,
  entityRequest,
  newDevice,
  newMaster,
  newOrder,
  newParty,
  type Order,
  type Party,
  signedBy,
} from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { productionSettings } from '../support/production-settings.ts';
import { runHere } from '../support/program-here.ts';
import { runNode, testDir } from '../support/running-node.ts';
import { testWith } from './toolchain.ts';
import type { Case } from './verifier-cases.ts';
import { manyMs, sameDecisions, title } from './verifier-decisions.ts';

/** Ledgers of each type on a live node, with grants, closings and a change of keys, as it exports them. */
async function liveCases(): Promise<Case[]> {
  const folder = testDir();
  await using node = await runNode({ env: productionSettings(folder) });
  const { base } = node;
  const anchor = await (await fetch(`${base}/.well-known/svc-authority`)).text();
  const resolved = async ({ actorId }: { readonly actorId: string }) =>
    (await fetch(`${base}/v1/resolve/svc:actor:${actorId}`)).text();
  const exportedBy = async (name: string, by: Party, actors: readonly Pick<Party, 'actorId'>[], args: string[]) => {
    const out = join(folder, `${name.replaceAll(' ', '-')}.jsonl`);
    const env = { LEDGER_TRUST_API_KEY: by.apiKey };
    const { code, err } = await runHere(['export', ...args, '--url', base, '--out', out], { env });
    if (code !== 0) throw new Error(err);
    return { name, text: readFileSync(out, 'utf8'), keys: await Promise.all(actors.map(resolved)), authority: anchor };
  };

  const order = await newOrder(base);
  const { supplier, buyer, ledgerId } = order;
  const [carrier, auditor] = [await newParty(base), await newParty(base)];
  const master = await newMaster(order);
  const other = await newMaster(order, supplier, 'PO-2');
  await grant(order, 'ledger', { ledger_id: ledgerId }, { ledger_id: ledgerId }, carrier, 'OWNER');
  const ofMaster = { traceledger_master_id: master.uuid };
  await grant({ ...order, supplier: carrier }, 'master', ofMaster, { master_id: master.uuid }, auditor, 'AUDITOR');
  const chained = {
    'x-delivery-chain': JSON.stringify([{ actor_id: carrier.actorId, actor_type: 'service', role: 'X' }]),
  };
  await append(master, carrier, 'GOODS_MOVED', {
    é: 0.1,
    '\u{1f600}': [1e21, 1e-7, -0, 4.5e15],
    '\uffff': 'a\u2028"\\\u007f\u0001',
  });
  await append(other, supplier, 'GOODS_MOVED', { n: 2, remark: null }, { headers: chained });
  await append(master, buyer, 'GOODS_TAKEN', { n: 3 });
  const actors = [supplier, buyer, carrier, auditor];
  const segment = await exportedBy('a segment of a live ledger', auditor, actors, [ledgerId]);
  const one = await exportedBy('a master of a live ledger', auditor, actors, ['--master', master.uuid]);
  const revoked = { ...ofMaster, delegate_actor_id: auditor.actorId };
  await done(base, 'PATCH', '/v1/delegation/master', {
    headers: signedBy(supplier, 'MASTER_DELEGATION_REVOKED', ledgerId, revoked),
    body: { master_id: master.uuid, delegate_actor_id: auditor.actorId },
  });
  const access = { actor_id: auditor.actorId, access: 'write', expires_at: '2090-01-01T01:00:00+01:00' };
  await done(base, 'POST', `/v1/traceledger/master/${master.uuid}/access`, { headers: supplier.bearer, body: access });
  const close = closeOf(order, buyer);
  await done(base, 'PATCH', close.path, { headers: close.headers });
  const whole = await exportedBy('a live ledger', supplier, actors, [ledgerId]);
  const { frlLedgerId, organizationId } = await newOrganization(base, supplier);
  const ofOrganization = { organization_id: organizationId };
  await grant({ ...order, ledgerId: frlLedgerId }, 'organization', ofOrganization, ofOrganization, carrier, 'OPS');
  const root = await exportedBy('a facility root', supplier, actors, [frlLedgerId]);
  const device = await newDevice(base, { keyed: true });
  const path = '/v1/entities/root-ledger';
  await done(base, 'POST', path, { headers: entityRequest(device, 'POST', path, '') });
  const body = JSON.stringify({ counterparty_actor_id: supplier.actorId, purpose: 'REPAIR' });
  const made = await done(base, 'POST', '/v1/engagements', {
    headers: entityRequest(device, 'POST', '/v1/engagements', body),
    body,
  });
  await done(base, 'PATCH', `/v1/engagements/${made.text('ledger_id')}/close`, { headers: supplier.bearer });
  const engagement = await exportedBy('an engagement', supplier, [...actors, device], [made.text('ledger_id')]);
  const tampered = whole.text.replace('GOODS_TAKEN', 'GOODS_LOST');
  const changedOne = { ...whole, name: 'a live ledger, changed', text: tampered };
  return [whole, segment, one, root, engagement, changedOne];
}

async function grant(
  { base, supplier, ledgerId }: Order,
  scope: 'ledger' | 'master' | 'organization',
  object: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>>,
  delegate: Party,
  role: string,
): Promise<void> {
  const eventType = { ledger: 'LEDGER', master: 'MASTER', organization: 'SUPPLIER' }[scope];
  const fields = { delegate_actor_id: delegate.actorId, role, permissions: {} };
  await done(base, 'POST', `/v1/delegation/${scope}`, {
    headers: signedBy(supplier, `${eventType}_DELEGATION_GRANTED`, ledgerId, { ...object, ...fields }),
    body: { ...query, ...fields },
  });
}

testWith(
  'python3',
  `${title} in ledgers of a live node`,
  async () => {
    expect(await sameDecisions(await liveCases())).toEqual([0, 2, 2, 0, 0, 1]);
  },
  manyMs,
);
