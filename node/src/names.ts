import { createHash } from "node:crypto";

/** A text as a part of a name of a conversation. Ids are data: any text is valid. A long one is a hash. */
export function namePart(text: string): string {
  try {
    const escaped = encodeURIComponent(text);
    if (escaped.length <= 120) return escaped;
  } catch {
    // The text contains an unpaired surrogate.
  }
  return `%${createHash("sha256").update(text, "utf16le").digest("hex")}`;
}
