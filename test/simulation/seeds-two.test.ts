import { expectSeeds } from './expect-seeds.ts';

expectSeeds('the second half of the seeds', 100_001);
