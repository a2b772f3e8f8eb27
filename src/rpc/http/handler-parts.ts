import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import type { ClientAddress } from '../call/client-address.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { AnswerLog } from '../pipeline/answer-log.ts';
import type { Pipeline } from '../pipeline/pipeline.ts';
import type { Cors } from './cors.ts';

export interface HttpHandlerParts {
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly pipeline: Pipeline;
  readonly answers: AnswerLog;
  readonly cors: Cors;
  readonly memory: MemoryBudget;
  readonly clientAddress: ClientAddress;
  newId(): string;
}
