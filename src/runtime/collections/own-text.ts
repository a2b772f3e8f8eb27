/** A shorter text is always a copy: V8 makes no slices of fewer characters. */
const sliceMinChars = 13;

/** Copies a text: a substring would keep the whole text in memory that it was cut from, which may have 1 MiB. */
export function ownText(text: string): string {
  return text.length < sliceMinChars ? text : Buffer.from(text).toString();
}
