import { ConfigError } from '../start-error.ts';
import { isHost } from './addresses.ts';

export type Environment = { readonly [name: string]: string | undefined };

/** Returns the value that a text stands for. Throws ConfigError, whose sentence has the name of the variable. */
type Reader<T> = (text: string, name: string) => T;

interface Variable<T> {
  readonly name: string;
  readonly read: Reader<T>;
  /** As the documentation shows it. */
  readonly meaning: string;
}

/** A variable with a default, which is written as an operator would write it. */
export interface Setting<T> extends Variable<T> {
  readonly default: string;
}

/** A variable whose value is null if it is not set. */
export interface OptionalSetting<T> extends Variable<T> {
  /** What holds then, in words. */
  readonly whenUnset: string;
}

/** The documentation has a row for each, in this order. */
export type Settings = Readonly<Record<string, Setting<unknown> | OptionalSetting<unknown>>>;

/** An empty variable counts as not set, and white space around a text is ignored. Throws ConfigError. */
export function readSetting<T>(env: Environment, setting: Setting<T>): T;
export function readSetting<T>(env: Environment, setting: OptionalSetting<T>): T | null;
export function readSetting<T>(env: Environment, setting: Setting<T> | OptionalSetting<T>): T | null {
  const { name, read } = setting;
  const text = env[name]?.trim() || ('default' in setting ? setting.default : '');
  return text === '' ? null : read(text, name);
}

export function plain(text: string): string {
  return text;
}

/** A text that `isValid` takes. `expected` ends the sentence "Set NAME to …". */
export function checked(isValid: (text: string) => boolean, expected: string): Reader<string> {
  return (text, name) => {
    if (isValid(text)) return text;
    throw wrongText(name, expected, text);
  };
}

/** The same for a text of a form that a sentence can say whole. */
export function matching(form: RegExp, expected: string): Reader<string> {
  return (text, name) => {
    if (form.test(text)) return text;
    throw new ConfigError(`Set ${name} to ${expected}.`);
  };
}

export const host = checked(isHost, 'an IP address or a host name, without scheme, brackets or port');

export function oneOf<T extends string>(...values: readonly T[]): Reader<T> {
  return (text, name) => {
    const found = values.find((value) => value === text);
    if (found === undefined) throw wrongText(name, values.join(', '), text);
    return found;
  };
}

const flagText = oneOf('0', '1', 'false', 'true');

export function flag(text: string, name: string): boolean {
  return ['1', 'true'].includes(flagText(text, name));
}

/** The parts of a text that commas separate. */
export function listOf(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

export function wholeNumber(min: number, max: number, what = 'a whole number'): Reader<number> {
  return (text, name) => {
    const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= min && number <= max) return number;
    throw wrongText(name, `${what} from ${min} to ${max}`, text);
  };
}

export const portNumber = wholeNumber(0, 65_535);

/** A bound whose excess is answered with `overloaded`. */
function bound(min: number, max: number): Reader<number> {
  const number = wholeNumber(0, max);
  return (text, name) => {
    const value = number(text, name);
    if (value >= min) return value;
    throw new ConfigError(
      `Set ${name} to a whole number from ${min} to ${max}: with ${value} every call, or a large one, would be refused.`,
    );
  };
}

export function countBound(min = 1): Reader<number> {
  return bound(min, 1_000_000);
}

export const mebibyte = 1024 * 1024;

/** A bound in MiB. Returns bytes. */
export function memoryBound(min = 1): Reader<number> {
  const mebibytes = bound(min, 4_096);
  return (text, name) => mebibytes(text, name) * mebibyte;
}

function wrongText(name: string, expected: string, text: string): ConfigError {
  return new ConfigError(`Set ${name} to ${expected}; it is ${JSON.stringify(text)}.`);
}
