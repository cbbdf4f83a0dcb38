import type { Message } from "../types.js";

type Fields = Record<string, any>;
type Part = Record<string, unknown>;

/** A message of LangChain, as far as this package reads it. */
export interface LangChainMessage {
  id?: string | undefined;
  name?: string | undefined;
  content: unknown;
  getType(): string;
  toDict(): { type: string; data: any };
}

/** Whether a value is a message. It may come from another copy of the library. */
export function isMessage(value: unknown): value is LangChainMessage {
  const given = value as Partial<LangChainMessage> | null | undefined;
  return typeof given?.getType === "function" && typeof given.toDict === "function";
}

/** The role and the content of a message, for counting and for pairing calls with results. */
export function toRecto(message: Omit<LangChainMessage, "toDict">): Message {
  const converted = { role: role(message.getType()), content: content(message) } as Message;
  if (message.id) converted.id = message.id;
  return converted;
}

/** The content that a message had, if it was a text. */
export function textOf({ content }: Message): string {
  if (typeof content === "string") return content;
  const first = content[0] as Fields | undefined;
  if (first?.["type"] === "tool_result") return typeof first["content"] === "string" ? first["content"] : "";
  return first?.["type"] === "text" ? first["text"] : "";
}

function role(type: string): string {
  switch (type) {
    case "ai":
      return "assistant";
    case "system":
    case "developer":
      return "system";
    case "tool":
    case "function":
      return "tool";
    default:
      return "user";
  }
}

function content(message: Fields): string | Part[] {
  if (message["getType"]() === "tool") {
    const text = message["content"];
    const result: Part = {
      type: "tool_result",
      tool_use_id: message["tool_call_id"],
      content: typeof text === "string" ? text : parts(text),
    };
    if (message["status"] === "error") result["is_error"] = true;
    return [result];
  }
  const calls = [...(message["tool_calls"] ?? []), ...(message["invalid_tool_calls"] ?? [])].map((call: Fields) => ({
    type: "tool_use",
    id: call["id"] ?? "",
    name: call["name"] ?? "",
    input: call["args"] ?? {},
  }));
  const given = message["content"];
  if (typeof given === "string" && given !== "" && calls.length === 0) return given;
  const all = [...parts(given), ...calls];
  // Frameworks store empty messages; Recto refuses them.
  return all.length > 0 ? all : [{ type: "empty" }];
}

function parts(content: unknown): Part[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return (Array.isArray(content) ? content : []).flatMap((block: string | Fields): Part[] => {
    if (typeof block === "string") return [{ type: "text", text: block }];
    switch (block["type"]) {
      case "text":
        return [{ type: "text", text: String(block["text"] ?? "") }];
      case "thinking":
      case "reasoning":
        return [{ type: "thinking", text: String(block[block["type"]] ?? "") }];
      case "tool_use":
      case "tool_call":
      case "input_json_delta":
        return []; // they are in `tool_calls`
      case "image_url":
      case "image":
        return [{ type: "image" }];
      case "audio":
      case "file":
        return [{ type: block["type"] }];
      default:
        return [{ type: "langchain_block", kind: String(block["type"]) }];
    }
  });
}
