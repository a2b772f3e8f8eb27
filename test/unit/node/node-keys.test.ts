import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readNodeKeys, readSharedNodeKeys } from '../../../src/node/node-keys.ts';
import { ConfigError } from '../../../src/runtime/start-error.ts';
import { publicKeyOf } from '../../../src/service/authority/authority.ts';
import { newKeyFile, productionSettings } from '../../support/production-settings.ts';
import { suiteDir } from '../../support/running-node.ts';

const root = suiteDir();
const ownFiles = { authorityKeyFile: null, secretsKeyFile: null, logKeyFile: null };

test('a development node makes a log key once, which only its user can read', () => {
  const dataDir = join(root, 'data');
  mkdirSync(dataDir);
  const made = readNodeKeys({ ...ownFiles, dataDir });
  expect(readdirSync(dataDir).sort()).toEqual(['authority.pem', 'log.pem', 'secrets.key']);
  expect(statSync(join(dataDir, 'log.pem')).mode & 0o777).toBe(0o600);
  expect(publicKeyOf(readNodeKeys({ ...ownFiles, dataDir }).log)).toBe(publicKeyOf(made.log));
  expect(publicKeyOf(made.log)).not.toBe(publicKeyOf(made.authority));
});

test('a log key that is the key of the authority is refused', () => {
  const dataDir = join(root, 'same');
  mkdirSync(dataDir);
  const key = newKeyFile(dataDir, 'key.pem');
  const same = { ...ownFiles, authorityKeyFile: key, logKeyFile: key, dataDir };
  expect(() => readNodeKeys(same)).toThrow(ConfigError);
  expect(() => readNodeKeys(same)).toThrow('Set LOG_KEY_FILE to another key');
});

describe('the nodes of a cluster', () => {
  const settings = productionSettings(root);
  const files = { authorityKeyFile: settings.AUTHORITY_KEY_FILE, secretsKeyFile: settings.SECRETS_KEY_FILE };

  test('derive the same log key from the secrets key where none is given', () => {
    const [one, two] = [1, 2].map(() => publicKeyOf(readSharedNodeKeys({ ...files, logKeyFile: null }).log));
    expect(one).toBe(two);
    const rotated = { ...files, authorityKeyFile: newKeyFile(root, 'next.pem'), logKeyFile: null };
    expect(publicKeyOf(readSharedNodeKeys(rotated).log)).toBe(one);
    expect(publicKeyOf(readSharedNodeKeys({ ...files, logKeyFile: settings.LOG_KEY_FILE }).log)).not.toBe(one);
  });

  test('are refused the key of the authority as log key', () => {
    expect(() => readSharedNodeKeys({ ...files, logKeyFile: settings.AUTHORITY_KEY_FILE })).toThrow(
      'Set LOG_KEY_FILE to another key',
    );
  });
});
