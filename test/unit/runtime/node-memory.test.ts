import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  checkoutVariables,
  imageVariables,
  nodeArguments,
  nodeVariables,
} from '../../../src/runtime/limits/node-memory.ts';

const textOf = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

describe('what Node is started with', () => {
  const { scripts } = JSON.parse(textOf('package.json'));

  test.each([
    ['npm start', scripts.start, ['src/main.ts']],
    ['npm run start:cluster', scripts['start:cluster'], ['cluster/main.ts']],
  ])('%s', (_, script, mains) => {
    const defaults = Object.entries(checkoutVariables).map(([name, value]) => `${name}=\${${name}:-${value}}`);
    expect(script).toBe([...defaults, 'exec node', ...nodeArguments, ...mains].join(' '));
  });

  test.each([
    ['Dockerfile', 'src/main.ts'],
    ['docker-compose.yml', 'cluster/main.ts'],
  ])('%s', (path, main) => {
    const command = ['node', ...nodeArguments, main].map((word) => JSON.stringify(word)).join(', ');
    expect(textOf(path)).toContain(`[${command}]`);
  });

  test('the variables of the image, which docker-compose.yml runs too', () => {
    const set = [...textOf('Dockerfile').matchAll(/^ENV (.*)$/gm)].flatMap(([, line = '']) => line.split(' '));
    const inPackage = { ...imageVariables, LD_PRELOAD: `\${MALLOC_PACKAGE:+${imageVariables.LD_PRELOAD}}` };
    const variables = Object.entries({ ...nodeVariables, ...inPackage }).map(([name, value]) => `${name}=${value}`);
    expect(set).toEqual(expect.arrayContaining(variables));
  });
});
