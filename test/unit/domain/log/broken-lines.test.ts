import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { brokenLines } from './broken-lines.ts';

const domain = new URL('../../../../src/domain/', import.meta.url);

test('every line that the list breaks is in its file once', () => {
  const counts = brokenLines.map(({ file, line }) => {
    const text = readFileSync(new URL(file, domain), 'utf8');
    return { file, line, times: text.split(line).length - 1 };
  });
  expect(counts.filter(({ times }) => times !== 1)).toEqual([]);
});
