const LINE_BREAK = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/gu;
/** The flag of a region: the only place where tag characters are visible. */
const FLAG = '\\u{1f3f4}[\\u{e0020}-\\u{e007e}]+\\u{e007f}';
const NEEDED = '\\t\\n\\u115f\\u1160\\u200c\\u200d\\p{Variation_Selector}';
const HIDDEN = '[\\p{Cc}\\p{Default_Ignorable_Code_Point}\\p{Bidi_Control}\\p{Noncharacter_Code_Point}]';
const HIDDEN_OR_FLAG = new RegExp(`${FLAG}|(?![${NEEDED}])${HIDDEN}`, 'gu');

/**
 * Cleans text from outside as the hub does: every line break becomes a line feed, and invisible or reordering characters are
 * removed, except those that scripts and emoji need.
 */
export function clean(text: string): string {
  const lines = text.toWellFormed().replace(LINE_BREAK, '\n');
  return lines.replace(HIDDEN_OR_FLAG, (found) => (found.startsWith('\u{1f3f4}') ? found : '')).trim();
}

/** [`clean`], on one line. */
export function oneLine(text: string): string {
  return clean(text).split(/\s+/u).join(' ').trim();
}

/** The number of Unicode scalar values: what the limits of the tools count. */
export function length(text: string): number {
  return Array.from(text).length;
}
