import { checkUuid } from '../../domain/values/fields.ts';
import type { FollowLedgerEventsRequest } from '../../gen/svc/v1/ledgers_pb.ts';
import type { FollowMasterEventsRequest } from '../../gen/svc/v1/masters_pb.ts';
import type { Call } from '../calls/call.ts';
import type { PushedAnswers } from '../calls/pushed-answers.ts';
import { checkFollowQuery } from './follow-query.ts';
import type { FollowAnswer } from './followed-event.ts';
import type { Followers } from './followers.ts';

export function followLedgerEvents(followers: Pick<Followers, 'followLedger'>) {
  return async (request: FollowLedgerEventsRequest, call: Call): Promise<PushedAnswers<FollowAnswer>> => {
    const ledgerId = checkUuid('ledger_id', request.ledgerId);
    return followers.followLedger(call, ledgerId, checkFollowQuery(request, request.afterSeq, 'after_seq'));
  };
}

export function followMasterEvents(followers: Pick<Followers, 'followMaster'>) {
  return async (request: FollowMasterEventsRequest, call: Call): Promise<PushedAnswers<FollowAnswer>> => {
    const masterId = checkUuid('uuid', request.uuid);
    const query = checkFollowQuery(request, request.afterMasterSeq, 'after_master_seq');
    return followers.followMaster(call, masterId, query);
  };
}
