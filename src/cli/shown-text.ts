/** Characters that move the cursor, end a line or turn the direction of writing. */
const unshowable = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** A text that holds what somebody else wrote, for a line on a terminal: nothing in it ends the line or writes over others. */
export function shownText(text: string): string {
  return text.replace(unshowable, escaped);
}

/** JSON that holds what somebody else wrote, for a terminal: the same JSON, in whose texts such characters are escaped. */
export function shownJson(json: string): string {
  // In JSON text they stand in strings alone, but for the line feeds between its members.
  return json.replace(unshowable, (character) => (character === '\n' ? character : escaped(character)));
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
