/** Characters that move the cursor, end a line or change the direction of writing. */
const unshowable = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** Escapes untrusted text for one line of a terminal, so that it cannot end the line or overwrite others. */
export function shownText(text: string): string {
  return text.replace(unshowable, escaped);
}

/** Escapes untrusted JSON for a terminal. It stays the same JSON. */
export function shownJson(json: string): string {
  // In JSON text these characters occur only in strings, except for the line feeds between members.
  return json.replace(unshowable, (character) => (character === '\n' ? character : escaped(character)));
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
