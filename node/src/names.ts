import { createHash } from "node:crypto";

/**
 * A text as a part of the name of a conversation. Ids are data: any text is valid. Different texts have different
 * parts. The part of a text that is long or has half of a surrogate pair is a hash.
 */
export function namePart(text: string): string {
  try {
    const escaped = encodeURIComponent(text);
    if (escaped.length <= 120) return escaped;
  } catch {
    // The text has half of a surrogate pair.
  }
  // No escaped text starts with "%%".
  return `%%${createHash("sha256").update(text, "utf16le").digest("hex")}`;
}
