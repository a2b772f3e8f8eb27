/** Characters that move the cursor, end a line or turn the direction of writing. */
const unshowable = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** A text that holds what somebody else wrote, for a line on a terminal: nothing in it can look like another line. */
export function shownText(text: string): string {
  return text.replace(unshowable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
