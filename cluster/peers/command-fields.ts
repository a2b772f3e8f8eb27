import type { CommandKey } from '../../src/domain/event/event.ts';
import { checkSignatureForm, parseKid } from '../../src/domain/keys/signature.ts';
import type { Command, CommandBase, CommandSignature, Lane, OpenLedger } from '../../src/domain/ledger/command.ts';
import { checkCallerEventType, checkHash, checkLabel, checkName } from '../../src/domain/values/fields.ts';
import { limits } from '../../src/runtime/limits/limits.ts';
import {
  checked,
  countField,
  type FieldReader,
  type FieldReaders,
  flagField,
  listOf,
  nameField,
  objectTextField,
  oneOf,
  optional,
  orNull,
  readFields,
  textOfForm,
  timeField,
  uuidField,
  wrong,
} from './wire-fields.ts';

/** A command has two keys if it is signed, has header identity and has an idempotency key. No command has more. */
const commandKeysMax = 2;

const kidField = textOfForm((text) => parseKid(text) !== null);

const signatureField: FieldReader<string> = (value, field) => {
  if (typeof value !== 'string') throw wrong(field);
  checked(() => checkSignatureForm(value))(value, field);
  return value;
};

/** Does not check that the text is canonical JSON: it is compared with the payload later. */
const textField = textOfForm((text) => text.length <= limits.requestBodyMaxBytes);

const signature: FieldReaders<CommandSignature> = {
  signature: signatureField,
  keyId: kidField,
  signedForm: textField,
};

const commandKey: FieldReaders<CommandKey> = { id: nameField, fingerprint: nameField, permanent: flagField };

const lane: FieldReaders<Lane> = { id: nameField, index: countField, previous: orNull(countField) };

const base: FieldReaders<CommandBase> = {
  ledgerId: uuidField,
  actorId: uuidField,
  actorType: oneOf('human', 'service', 'external', 'device'),
  signature: orNull((value, field) => readFields(signature, value, field)),
  signatureRule: oneOf('if_keyed', 'optional'),
  commandKeys: listOf((value, field) => readFields(commandKey, value, field), commandKeysMax),
  resubmitted: optional(flagField),
  lane: optional(orNull((value, field) => readFields(lane, value, field))),
  requestId: optional(nameField),
  deadline: countField,
};

const facts: FieldReaders<OpenLedger['facts']> = {
  type: oneOf('ORDER', 'FACILITY_ROOT', 'ENTITY_ROOT', 'ENGAGEMENT'),
  buyerActorId: orNull(uuidField),
  supplierActorId: orNull(uuidField),
  buyerOrganizationId: orNull(uuidField),
  supplierOrganizationId: orNull(uuidField),
  primaryActorId: orNull(uuidField),
  counterpartyActorId: orNull(uuidField),
  organizationId: orNull(uuidField),
  entityId: orNull(uuidField),
  purpose: orNull(checked(checkLabel)),
};

/** The reader of each field of each kind of command. The compiler checks that no field is missing. */
export const commandReaders: {
  readonly [kind in Command['kind']]: FieldReaders<Extract<Command, { readonly kind: kind }>>;
} = {
  open_ledger: {
    ...base,
    kind: oneOf('open_ledger'),
    facts: (value, field) => readFields(facts, value, field),
    registeredPayload: orNull(objectTextField),
  },
  create_master: {
    ...base,
    kind: oneOf('create_master'),
    masterId: uuidField,
    businessRef: checked(checkName),
    scope: checked(checkLabel),
  },
  append_event: {
    ...base,
    kind: oneOf('append_event'),
    masterId: uuidField,
    eventType: checked(checkCallerEventType),
    payload: textField,
    causedByHash: orNull(checked(checkHash)),
  },
  close_master: { ...base, kind: oneOf('close_master'), masterId: uuidField },
  close_ledger: { ...base, kind: oneOf('close_ledger') },
  grant: {
    ...base,
    kind: oneOf('grant'),
    scope: oneOf('organization', 'ledger', 'master'),
    masterId: orNull(uuidField),
    linkId: uuidField,
    delegateActorId: uuidField,
    role: checked(checkLabel),
    permissions: objectTextField,
    expiresAt: orNull(timeField),
    requested: objectTextField,
  },
  revoke: {
    ...base,
    kind: oneOf('revoke'),
    scope: oneOf('organization', 'ledger', 'master'),
    masterId: orNull(uuidField),
    delegateActorId: orNull(uuidField),
    linkId: orNull(uuidField),
  },
};
