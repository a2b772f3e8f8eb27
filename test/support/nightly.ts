/** Whether this is `npm run test:nightly`, which has every fault and many seeds; the ordinary run has a few. */
export const isNightly = process.env.TEST_NIGHTLY === '1';
