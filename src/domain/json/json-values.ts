/** Characters that begin or part the values of a JSON text: `,`, `[` and `{`. */
const beginsValue = new Uint8Array(256);
for (const character of ',[{') beginsValue[character.charCodeAt(0)] = 1;

/**
 * Returns how many JSON values a text has at most, without reading it: some hundred times faster. In strings every
 * such character counts. Of a serialized message all bytes count.
 */
export function valuesIn(bytes: Uint8Array): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at += 1) count += beginsValue[bytes[at] as number] as number;
  return count;
}

/** The same of a string. */
export function valuesInText(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) count += beginsValue[text.charCodeAt(at)] ?? 0;
  return count;
}
