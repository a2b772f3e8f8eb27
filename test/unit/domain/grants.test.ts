import { describe, expect, test } from 'vitest';
import { grantOf } from '../../../src/domain/event/grant.ts';
import { accessSignedForms, grantSignedForms, revokeSignedForms } from '../../../src/domain/event/service-events.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import { applyToMaster, type MasterState } from '../../../src/domain/ledger/master-state.ts';
import {
  append,
  createMaster,
  delegate,
  grant,
  ledgerId,
  masterId,
  openLedger,
  revoke,
  signature,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { heldBytes } from '../../support/held-bytes.ts';
import { kid, opened, organization, payloadOf } from '../../support/ledger-kinds.ts';
import { chainOf, only, start } from '../../support/world.ts';

describe('grants', () => {
  const scopes = [
    ['organization', 'facility root', 'SUPPLIER_DELEGATION_GRANTED', { organization_id: organization }],
    ['ledger', 'order', 'LEDGER_DELEGATION_GRANTED', { ledger_id: ledgerId }],
    ['master', 'order', 'MASTER_DELEGATION_GRANTED', { traceledger_master_id: masterId }],
  ] as const;

  test.each(scopes)('%s: what is signed and what is stored', (scope, kind, eventType, object) => {
    const permissions = { access: 'read', note: 'ü', nested: { b: [1, { a: null }] } };
    const [form, ...others] = grantSignedForms(object, delegate, 'OPS', permissions);
    expect(others).toEqual([]);
    expect(JSON.parse(form)).toEqual({ ...object, delegate_actor_id: delegate, role: 'OPS', permissions });
    const chain = opened(kind);
    chain.run(createMaster());
    const command = grant({ scope, permissions: canonicalJson(permissions), requested: form });
    const event = only(chain.run({ ...command, signature: signature(kid, form) }));
    expect(event).toMatchObject({ eventType, actorSigPayload: form, authoritySig: null });
    expect(event.master).toEqual(scope === 'master' ? expect.objectContaining({ id: masterId, seq: 1 }) : null);
    expect(payloadOf(event)).toEqual({ ...JSON.parse(form), link_id: command.linkId, granted_at: event.createdAt });
    expect(grantOf(event)).toMatchObject({
      access: 'read',
      permissions: canonicalJson(permissions),
      expiresAt: null,
      grantedByActorId: supplier,
      eventId: event.id,
    });
  });

  test('a grant without permissions is signed with or without the empty object, and stored with it', () => {
    const object = { ledger_id: ledgerId };
    const base = { ...object, delegate_actor_id: delegate, role: 'OPS' };
    const forms = grantSignedForms(object, delegate, 'OPS', undefined);
    expect(forms.map((form) => JSON.parse(form))).toEqual([{ ...base, permissions: {} }, base]);
    for (const form of forms) {
      const command = grant({ scope: 'ledger', signature: signature(kid, form) });
      const event = only(opened('order').run(command));
      expect(payloadOf(event)).toMatchObject({ permissions: {} });
      expect(event.actorSigPayload).toBe(form);
    }
  });

  test('the request of POST …/access is signed and stored with its time as it was sent', () => {
    const expiresAt = '2026-11-21T05:30:00.5+02:00';
    const [form] = accessSignedForms(masterId, delegate, 'write', expiresAt);
    expect(JSON.parse(form)).toEqual({
      access: 'write',
      delegate_actor_id: delegate,
      expires_at: expiresAt,
      traceledger_master_id: masterId,
    });
    const chain = opened('order');
    chain.run(createMaster());
    const command = grant({ role: 'ACCESS', expiresAt: '2026-11-21T03:30:00.500Z', requested: form, access: 'write' });
    const event = only(chain.run({ ...command, permissions: '{"access":"write"}' }));
    expect(payloadOf(event)).toEqual({
      ...JSON.parse(form),
      role: 'ACCESS',
      permissions: { access: 'write' },
      link_id: command.linkId,
      granted_at: start,
    });
    expect(grantOf(event)).toMatchObject({ access: 'write', expiresAt: '2026-11-21T03:30:00.500Z' });
  });

  test('a stored grant may have a longer fraction than requests may: it was taken before they had a bound', () => {
    const chain = chainOf(openLedger(), createMaster());
    const [requested] = accessSignedForms(masterId, delegate, 'write', `2126-11-21T05:30:00.5${'0'.repeat(50)}Z`);
    const command = grant({ role: 'ACCESS', expiresAt: '2126-11-21T05:30:00.500Z', requested, access: 'write' });
    const event = only(chain.run(command));
    expect(grantOf(event).expiresAt).toBe('2126-11-21T05:30:00.500Z');
    expect(chain.refusal(append({ actorId: delegate }))).toBeNull();
  });

  test('a grant that a master holds in memory takes less than half a KiB, however large its permissions are', async () => {
    const permissions = `{"list":[${Array(2_000).fill('1').join(',')}]}`;
    const chain = chainOf(openLedger(), createMaster());
    const created = chain.masters.get(masterId) ?? null;
    const given = (index: number) =>
      grant({ linkId: uuid(0x1_0000 + index), delegateActorId: uuid(0x2_0000 + index), permissions });
    const granted = Array.from({ length: 200 }, (_, index) => only(chain.run(given(index))));
    const fold = () => granted.reduce<MasterState | null>(applyToMaster, created);
    const before = await heldBytes();
    const held = Array.from({ length: 10 }, fold);
    expect(((await heldBytes()) - before) / (10 * granted.length)).toBeLessThan(512);
    expect(held[0]?.grants.size).toBe(granted.length);
  });

  test('POST …/access without an end has no expires_at', () => {
    expect(JSON.parse(accessSignedForms(masterId, delegate, 'read', undefined)[0])).not.toHaveProperty('expires_at');
  });

  test('a grant over another names the link that it replaces', () => {
    const chain = chainOf(openLedger(), createMaster(), grant());
    const event = only(chain.run(grant({ linkId: uuid(0xcd), access: 'read' })));
    expect(payloadOf(event)).toMatchObject({ link_id: uuid(0xcd), replaces_link_id: uuid(0xcc) });
  });

  test('fields of the service override fields of the request', () => {
    const chain = chainOf(openLedger(), createMaster());
    const requested = canonicalJson({
      delegate_actor_id: delegate,
      link_id: 'mine',
      granted_at: '2000-01-01T00:00:00.000Z',
      role: 'OWNER',
      permissions: { access: 'write' },
      traceledger_master_id: 'another',
    });
    const event = only(chain.run({ ...grant({ role: 'AUDITOR', access: 'read' }), requested }));
    expect(payloadOf(event)).toEqual({
      delegate_actor_id: delegate,
      link_id: uuid(0xcc),
      granted_at: start,
      role: 'AUDITOR',
      permissions: { access: 'read' },
      traceledger_master_id: masterId,
    });
  });

  test('a permission key such as __proto__ is stored and signed, and grants nothing', () => {
    const permissions = '{"__proto__":{"access":"write"},"constructor":1}';
    const requested = `{"delegate_actor_id":"${delegate}","ledger_id":"${ledgerId}","permissions":${permissions},"role":"AUDITOR"}`;
    const chain = opened('order');
    const event = only(chain.run({ ...grant({ scope: 'ledger', role: 'AUDITOR' }), permissions, requested }));
    expect(event.payload).toContain(`"permissions":${permissions}`);
    expect(grantOf(event)).toMatchObject({ access: 'read', permissions });
    expect(chain.refusal(append({ actorId: delegate }))).toBe('not_found');
    expect(chain.refusal(createMaster({ actorId: delegate }))).toBe('permission_denied');
  });
});

describe('revocations', () => {
  test.each([
    ['organization', 'facility root', 'SUPPLIER_DELEGATION_REVOKED', { organization_id: organization }],
    ['ledger', 'order', 'LEDGER_DELEGATION_REVOKED', { ledger_id: ledgerId }],
    ['master', 'order', 'MASTER_DELEGATION_REVOKED', { traceledger_master_id: masterId }],
  ] as const)('%s: what is signed and what is stored', (scope, kind, eventType, object) => {
    const [form] = revokeSignedForms(object, delegate);
    expect(JSON.parse(form)).toEqual({ ...object, delegate_actor_id: delegate });
    const chain = opened(kind);
    chain.run(createMaster());
    chain.run(grant({ scope }));
    const event = only(chain.run(revoke({ scope, signature: signature(kid, form) })));
    expect(event).toMatchObject({ eventType, actorSigPayload: form });
    expect(payloadOf(event)).toEqual({ ...JSON.parse(form), link_id: uuid(0xcc), revoked_at: event.createdAt });
  });
});
