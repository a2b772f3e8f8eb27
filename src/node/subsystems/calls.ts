import { UUID_V7_RANDOM_BYTES, uuidV7 } from '../../domain/values/uuid.ts';
import { clientAddressBehind } from '../../rpc/call/client-address.ts';
import { endpointsOf } from '../../rpc/endpoints/endpoint.ts';
import type { Implementation } from '../../rpc/endpoints/handlers.ts';
import { createAnswerLog } from '../../rpc/pipeline/answer-log.ts';
import { createCallRates } from '../../rpc/pipeline/call-rates.ts';
import { createPipeline } from '../../rpc/pipeline/pipeline.ts';
import type { AccessQueue } from '../../service/audit/access-history.ts';
import type { Credentials } from '../../service/developers/credentials.ts';
import type { SecretBox } from '../../service/records/secret-box.ts';
import type { NodeContext } from './context.ts';

export function createCalls(
  node: NodeContext,
  api: readonly Implementation[],
  credentials: Credentials,
  secrets: SecretBox,
  accesses: AccessQueue,
) {
  const { config, log, metrics, records, memory, random, now, monotonicMs, isClockRight } = node;
  const answers = createAnswerLog({
    log,
    metrics,
    history: (entry, actorId) => accesses.note(entry, actorId),
    monotonicMs,
    now,
  });
  const rates = createCallRates(config.rateLimits);
  const walks = { places: node.reads, memory };
  return {
    endpoints: endpointsOf(api),
    pipeline: createPipeline({
      ...{ credentials, records, secrets, rates, walks, answers, random, now, monotonicMs, isClockRight },
    }),
    answers,
    clientAddress: clientAddressBehind(config.trustedProxies),
    newId: () => uuidV7(now(), random(UUID_V7_RANDOM_BYTES)),
  };
}

export type NodeCalls = ReturnType<typeof createCalls>;
