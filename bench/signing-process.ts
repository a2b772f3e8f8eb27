import { answerJobs } from './forked.ts';
import { type SigningJob, signRequests } from './signed-requests.ts';

/** Signs requests of a run, a process of its own. */
answerJobs((job: SigningJob) => {
  signRequests(job);
  return {};
});
