import { readFileSync, statSync } from 'node:fs';

/** What stands in place of a secret. */
const placeholder = '[redacted]';

/**
 * Secrets that show by their form: login of a URL, API keys, secrets of webhook subscriptions, bearer tokens, and private keys in PEM (with real line
 * ends or with those of JSON). A text without the mark is not searched: looking for the form costs 20 µs a line, looking for the marks 2.
 */
const secretForms: readonly { readonly mark: string; readonly form: RegExp }[] = [
  { mark: '://', form: /(?<=:\/\/)[^\s/?#@"']{0,1024}(?=@)/g },
  { mark: 'svc_sk_', form: /svc_sk_(?:test|live_[a-z]{2})_[0-9A-Za-z]{16,64}/g },
  { mark: 'whsec_', form: /whsec_[0-9A-Za-z+/=]{16,64}/g },
  { mark: 'earer ', form: /(?<=[Bb]earer )[^\s"']{8,512}/g },
  { mark: ' PRIVATE KEY', form: /(?<=-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----)[^-]{1,16384}/g },
];

/** Shorter ones would be found in the middle of words. They are hidden by the rest of the rule alone. */
const secretCharactersMin = 4;
const secretFileBytesMax = 4_096;

/** Variables whose value is a secret, and those that name a file which holds one. */
const secretName = /SECRET|PASSWORD|TOKEN|API_KEY/;
const secretFileName = /(?:SECRETS_KEY|SECRET|PASSWORD|TOKEN)_FILE$/;

/** Takes secrets out of a text. */
export type Redact = (text: string) => string;

/** The one rule for all that a process writes to its log and to standard error: secrets by their form, and these by their value. */
export function redaction(secrets: readonly string[] = []): Redact {
  const values = secrets
    .filter((secret) => secret.length >= secretCharactersMin)
    .flatMap((secret) => [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]);
  // The longest first: one may be a part of another.
  const known = [...new Set(values)].sort((one, other) => other.length - one.length);
  return (text) => {
    let redacted = text;
    for (const value of known) redacted = redacted.replaceAll(value, placeholder);
    for (const { mark, form } of secretForms)
      if (redacted.includes(mark)) redacted = redacted.replace(form, placeholder);
    return redacted;
  };
}

/** The secrets that an environment holds, also in URLs and in files that it names. Files that cannot be read are left to whoever needs them. */
export function secretsIn(env: { readonly [name: string]: string | undefined }): string[] {
  return Object.entries(env).flatMap(([name, given]) => {
    const value = given?.trim() ?? '';
    if (value === '') return [];
    if (secretFileName.test(name)) return fileText(value);
    if (secretName.test(name) && !name.endsWith('_FILE')) return [value];
    return URL.canParse(value) ? passwordIn(value) : [];
  });
}

function passwordIn(url: string): string[] {
  const { password } = new URL(url);
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}

function fileText(file: string): string[] {
  try {
    const { size } = statSync(file);
    return size > secretFileBytesMax ? [] : [readFileSync(file, 'utf8').trim()];
  } catch {
    return [];
  }
}
