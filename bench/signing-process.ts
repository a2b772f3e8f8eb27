import { answerJob } from './child.ts';
import { type SigningJob, signRequests } from './signed-requests.ts';

/** Signs requests of a run, a process of its own. */
await answerJob((job: SigningJob) => {
  signRequests(job);
  return {};
});
