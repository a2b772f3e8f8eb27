import { expectSeeds } from './expect-seeds.ts';

expectSeeds('the first half of the seeds', 1);
