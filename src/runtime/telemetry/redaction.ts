import { readFileSync, statSync } from 'node:fs';

/** Replaces a secret. */
const placeholder = '[redacted]';

/**
 * Secrets that are recognised by their form: logins in URLs, API keys, secrets of webhook subscriptions, bearer tokens,
 * and private keys in PEM (with real line ends or those of JSON). A text that does not contain the `mark` is not
 * searched further: searching a line for all forms takes 20 µs, for all marks 2 µs.
 */
const secretForms: readonly { readonly mark: string; readonly form: RegExp }[] = [
  { mark: '://', form: /(?<=:\/\/)[^\s/?#@"']{0,1024}(?=@)/g },
  { mark: 'svc_sk_', form: /svc_sk_(?:test|live_[a-z]{2})_[0-9A-Za-z]{16,64}/g },
  { mark: 'whsec_', form: /whsec_[0-9A-Za-z+/=]{16,64}/g },
  { mark: 'earer ', form: /(?<=[Bb]earer )[^\s"']{8,512}/g },
  { mark: ' PRIVATE KEY', form: /(?<=-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----)[^-]{1,16384}/g },
];

/** Shorter secrets would match in the middle of words. They are hidden only if their form is recognised. */
const secretCharactersMin = 4;
const secretFileBytesMax = 4_096;

/** Names of variables whose value is a secret, and of variables that name a file with a secret. */
const secretName = /SECRET|PASSWORD|TOKEN|API_KEY/;
const secretFileName = /(?:SECRETS_KEY|SECRET|PASSWORD|TOKEN)_FILE$/;

/** Removes secrets from a text. */
export type Redact = (text: string) => string;

/**
 * The one rule for everything that a process writes to its log and to standard error. It removes secrets by their form,
 * and the given `secrets` by their value.
 */
export function redaction(secrets: readonly string[] = []): Redact {
  const values = secrets
    .filter((secret) => secret.length >= secretCharactersMin)
    .flatMap((secret) => [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]);
  // Longest first: one may contain another.
  const known = [...new Set(values)].sort((one, other) => other.length - one.length);
  return (text) => {
    let redacted = text;
    for (const value of known) redacted = redacted.replaceAll(value, placeholder);
    for (const { mark, form } of secretForms)
      if (redacted.includes(mark)) redacted = redacted.replace(form, placeholder);
    return redacted;
  };
}

/**
 * The secrets of an environment, also in URLs and in the files that it names. Files that cannot be read are skipped:
 * the code that needs them reports that.
 */
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
