// Checks that every production dependency has a license that this project may ship with:
// `node .ci/licenses.mjs [LOCK_FILE]`. Ends with 1 and the packages if one has another license, or none. The lock file
// has the license of each package.
import { readFileSync } from 'node:fs';

const allowed = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'Unlicense',
]);

/** Reads an SPDX expression of names, AND, OR and parentheses; AND binds closer. False for anything else. */
function isAllowed(expression) {
  const tokens = expression.match(/[()]|[^\s()]+/g) ?? [];
  let at = 0;
  const one = () => {
    const token = tokens[at++];
    if (token !== '(') return allowed.has(token);
    const inner = any();
    return tokens[at++] === ')' && inner;
  };
  const all = () => {
    let result = one();
    while (tokens[at] === 'AND') {
      at += 1;
      result = one() && result;
    }
    return result;
  };
  const any = () => {
    let result = all();
    while (tokens[at] === 'OR') {
      at += 1;
      result = all() || result;
    }
    return result;
  };
  return any() && at === tokens.length;
}

const [lockFile = 'package-lock.json'] = process.argv.slice(2);
const { packages } = JSON.parse(readFileSync(lockFile, 'utf8'));
const shipped = Object.entries(packages).filter(([path, { dev, link }]) => path !== '' && !dev && !link);
const refused = shipped.filter(([, { license }]) => typeof license !== 'string' || !isAllowed(license));
for (const [path, { license }] of refused)
  console.error(
    `licenses: ${path.replace(/^.*node_modules\//, '')} has ${license ?? 'no license'}, which is not in the list of .ci/licenses.mjs`,
  );
if (shipped.length === 0) console.error(`licenses: ${lockFile} lists no production dependency`);
console.log(`licenses: ${shipped.length - refused.length} of ${shipped.length} production dependencies may be shipped`);
process.exit(refused.length > 0 || shipped.length === 0 ? 1 : 0);
