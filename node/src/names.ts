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
 * A text as a part of the name of a conversation. Different texts have different parts. The part of a text that is
 * long or has half of a surrogate pair is a hash.
 */
export function namePart(text: string): string {
  try {
    const escaped = encodeURIComponent(text);
    if (escaped.length <= 120) return escaped;
  } catch {
    // The text has half of a surrogate pair.
  }
  return hash(text);
}

/** No escaped text starts with "%%". */
function hash(text: string): string {
  return `%%${createHash("sha256").update(text, "utf16le").digest("hex")}`;
}
