// What cannot be seen, made visible. Names and what a tool is called with are decided on by what they look like: a character that turns
// the words around it, or that has no shape, stands there as its escape, as JSON writes it.
import { textOf } from "./dom.js";

// Joiners and variation selectors shape the letter or the picture before them: in Persian, in Devanagari, in emoji. After anything else
// they are only hidden. The same with tags, which make a flag of a region.
const SHAPED = /[\u200c\u200d\p{Variation_Selector}](?<=[^\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{N}\p{P}\p{Z}\p{C}\u0000-\u007f].)|\ufe0f(?<=[#*0-9].)|[\u{e0020}-\u{e007f}](?<=\u{1f3f4}[\u{e0020}-\u{e007e}]{0,6}.)/u;
const UNSEEN = /[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]|(?![\t\n\r])\p{Cc}/u;
const HIDDEN = new RegExp(`${SHAPED.source}|(${UNSEEN.source})`, "gu");

const escaped = (units) => units.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** The value as text that shows all that is in it. */
export const marked = (value) => textOf(value).replace(HIDDEN, (found, hidden) => (hidden ? escaped(hidden) : found));

/** Whether something of a text can be seen. */
export const isSeen = (text) => textOf(text).replace(new RegExp(`[\\s\\p{Z}]|${UNSEEN.source}`, "gu"), "") !== "";
