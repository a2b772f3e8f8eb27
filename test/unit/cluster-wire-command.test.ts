import { expect, test } from 'vitest';
import { commandOf, commandText } from '../../cluster/peers/wire-command.ts';
import type { Command, CommandSignature } from '../../src/domain/command.ts';
import { append, closeLedger } from '../support/commands.ts';

const payload = `{"note":"${'é"'.replace('"', '\\"').repeat(100)}"}`;
const signedAs = (signedForm: string): CommandSignature => ({
  signature: 'c2ln',
  keyId: 'svc:actor:a#key-1',
  signedForm,
});

const commands: readonly (readonly [name: string, command: Command])[] = [
  ['signed as it stands', append({ payload, signature: signedAs(payload) })],
  ['signed in another form', append({ payload, signature: signedAs('{}') })],
  ['signed over the empty text', append({ payload, signature: signedAs('') })],
  ['without a signature', append({ payload, signature: null })],
  ['that is no append', { ...closeLedger(), signature: signedAs('{"status":"CLOSED"}') }],
];

test.each(commands)('a command %s arrives at another node as it was sent', (_, command) => {
  expect(commandOf(commandText(command))).toEqual(JSON.parse(JSON.stringify(command)));
});

test('a payload that was signed as it stands crosses once', () => {
  const text = commandText(append({ payload, signature: signedAs(payload) }));
  expect(text.split(JSON.stringify(payload))).toHaveLength(2);
});

test('a command signed in the whole form is the same command: either form is read', () => {
  const command = append({ payload, signature: signedAs(payload) });
  expect(commandOf(JSON.stringify(command))).toEqual(JSON.parse(JSON.stringify(command)));
});

test.each(['null', '{}', '[]', '{"kind":"drop_table","ledgerId":"a"}'])('%s is no command', (text) => {
  expect(() => commandOf(text)).toThrow(TypeError);
});
