import type { AgentInputItem } from "@openai/agents-core";

import { encode } from "../json.js";
import type { Message } from "../types.js";

/** The field of `metadata` with the item, as it was added. */
const KEY = "openai_agents_js";
/** The field of an object that contains bytes in base64, because JSON has no bytes. */
const BYTES = "__recto_base64";

type Fields = Record<string, any>;
type Part = Record<string, unknown>;

/** The item as a message. `metadata` keeps the item itself, because the SDK compares items. */
export function toRecto(item: AgentInputItem): Message {
  const { role, content } = converted(item as Fields);
  return { role, content, metadata: { [KEY]: withoutBytes(item) } } as unknown as Message;
}

/** The item that was added, or a new one for a message that the SDK did not add, such as a summary. */
export function fromRecto(message: Message): AgentInputItem {
  const stored: unknown = (message["metadata"] as Fields | undefined)?.[KEY];
  if (stored !== undefined) return withBytes(stored) as AgentInputItem;
  const { content, role } = message;
  const texts = Array.isArray(content) ? content.map((part) => (part as Fields)["text"] ?? "") : [content];
  const text = texts.join("\n");
  if (role === "assistant") {
    return { type: "message", role, status: "completed", content: [{ type: "output_text", text }] };
  }
  return { type: "message", role: role === "system" ? role : "user", content: text };
}

function converted(item: Fields): { role: string; content: Part[] } {
  const kind: string = item["type"] ?? "message";
  if (kind === "message") return { role: item["role"], content: parts(item["content"]) };
  if (kind === "function_call") {
    const call = { type: "tool_use", id: item["callId"], name: item["name"], input: input(item["arguments"]) };
    return { role: "assistant", content: [call] };
  }
  if (kind === "function_call_result") {
    const output: unknown = item["output"];
    const content = typeof output === "string" ? output : parts(Array.isArray(output) ? output : [output]);
    return { role: "tool", content: [{ type: "tool_result", tool_use_id: item["callId"], content }] };
  }
  const isResult = kind.endsWith("_output") || kind.endsWith("_result");
  return { role: isResult ? "tool" : "assistant", content: [{ type: "openai_item", kind }] };
}

function parts(content: unknown): Part[] {
  if (typeof content === "string") content = [{ type: "input_text", text: content }];
  const converted = (Array.isArray(content) ? content : []).map((part: Fields): Part => {
    const kind = String(part["type"]);
    if (typeof part["text"] === "string") return { type: "text", text: part["text"] };
    // The item in `metadata` has the data.
    for (const media of ["image", "audio", "file"]) if (kind.includes(media)) return { type: media };
    return { type: "openai_part", kind };
  });
  // The SDK stores empty messages; Recto refuses them.
  const isEmpty = converted.every((part) => part["type"] === "text" && part["text"] === "");
  return isEmpty ? [{ type: "empty" }] : converted;
}

/** The arguments of a call: a JSON value, or the text if it is not JSON or has a number such as 1e999. */
function input(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    encode(value);
    return value;
  } catch {
    return text;
  }
}

function withoutBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return { [BYTES]: Buffer.from(value).toString("base64") };
  return mapped(value, withoutBytes);
}

function withBytes(value: unknown): unknown {
  const text = isObject(value) ? value[BYTES] : undefined;
  if (typeof text === "string") return new Uint8Array(Buffer.from(text, "base64"));
  return mapped(value, withBytes);
}

/** A list or a plain object with changed values. `checks.ts` checks other values when they are written as JSON. */
function mapped(value: unknown, change: (value: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(change);
  if (!isObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, change(field)]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
