import type { ActorRecord } from '../../src/service/actors/actor-record.ts';

/** The record of an actor that has no key yet. */
export function bareActor(actorId: string): ActorRecord {
  return {
    actorId,
    role: 'PARTICIPANT',
    world: 'sandbox',
    entity: null,
    developer: null,
    createdAt: '2027-01-01T00:00:00.000Z',
    keys: [],
  };
}
