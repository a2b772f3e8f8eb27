/**
 * Whether this is the nightly run (`npm run test:nightly`). It has every fault and many seeds; the ordinary run has a
 * few of each.
 */
export const isNightly = process.env.TEST_NIGHTLY === '1';
