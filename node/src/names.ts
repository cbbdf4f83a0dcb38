import { createHash } from "node:crypto";

/** The form of the ids of conversations. No conversation has such a name. */
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The name of the conversation with an id. Ids are data: any text is valid. Different ids have different names. */
export function conversationName(prefix: string, id: string): string {
  const name = prefix + namePart(id);
  // These names have another meaning, and are refused.
  return name === "" || name === "@" || ID.test(name) ? prefix + hash(id) : name;
}

/**
 * A text as a part of the name of a conversation: without "/" and control characters, and not too long. Different texts
 * have different parts. The part of a text that is long or has half of a surrogate pair is a hash. The Python package
 * makes the same names.
 */
export function namePart(text: string): string {
  const escaped = text.replace(/[\x00-\x1f\x7f-\x9f%/]/g, encodeURIComponent);
  const isShort = Buffer.byteLength(escaped) <= 120;
  return isShort && !HALF_OF_A_PAIR.test(text) ? escaped : hash(text);
}

const HALF_OF_A_PAIR = /\p{Surrogate}/u;

/** No escaped text has "%%". */
function hash(text: string): string {
  return `%%${createHash("sha256").update(text, "utf16le").digest("hex")}`;
}
