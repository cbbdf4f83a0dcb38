import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

import type { StoredMessage } from "@langchain/core/messages";

import { InvalidRequest } from "../errors.js";
import { encode } from "../json.js";
import type { Message } from "../types.js";
import { textOf, toRecto, type LangChainMessage } from "./messages.js";

/** The field of `metadata` with the message, as LangChain writes it. */
const KEY = "langchain";

type Fields = Record<string, any>;

/** What is known of a stored message: enough to detect that the state has another message with its id. */
export interface Known {
  /** Its index in the log. */
  index: number;
  /** The message without `metadata`. */
  message: Message;
  /** The hash of a content with parts, because `message` has no media. Missing if LangChain's form was not stored. */
  contentHash: string | undefined;
}

/**
 * The message to store. `metadata` keeps the form of LangChain with media, calls and all other fields, unless it is
 * not JSON. A text is stored only once.
 */
export function record(message: LangChainMessage, id: string): Message {
  const stored = converted(message, id);
  const dump = dumpOf(message);
  if (dump === undefined) return stored;
  if (textOf(stored) === dump.data.content) delete dump.data.content;
  return { ...stored, metadata: { [KEY]: dump } };
}

export function knownOf(index: number, { metadata, ...message }: Message): Known {
  const content: unknown = (metadata?.[KEY] as Fields | undefined)?.["data"]?.content;
  return { index, message: message as Message, contentHash: Array.isArray(content) ? hash(content) : undefined };
}

/** Whether the stored message has the text, the calls and the media of this one. */
export function isRecorded(known: Known, message: LangChainMessage, id: string): boolean {
  if (!isDeepStrictEqual(known.message, converted(message, id))) return false;
  const { content } = message;
  return known.contentHash === undefined || (Array.isArray(content) && known.contentHash === hash(asJson(content) as unknown[]));
}

/** The stored message in the form of LangChain. One that another program wrote, such as a summary, is converted. */
export function restored(message: Message): StoredMessage {
  const dump = message.metadata?.[KEY] as Fields | undefined;
  if (dump !== undefined) return { type: dump["type"], data: { content: textOf(message), ...dump["data"] } };
  return { type: TYPES[message.role], data: dataOf(message) as StoredMessage["data"] };
}

const TYPES = { system: "system", user: "human", assistant: "ai", tool: "tool" };

function dataOf({ role, content, id }: Message): Fields {
  const parts: Fields[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const texts = (list: Fields[]) => list.flatMap((part) => (typeof part["text"] === "string" ? [part["text"]] : []));
  if (role === "tool") {
    const part = parts.find(({ type }) => type === "tool_result") ?? {};
    const result: Fields = part["tool_result"] ?? part;
    const output: unknown = result["content"] ?? "";
    const text = Array.isArray(output) ? texts(output).join("\n") : String(output);
    const status = result["is_error"] ? { status: "error" } : {};
    return { content: text, id, tool_call_id: result["tool_use_id"] ?? "", ...status };
  }
  const calls = parts.flatMap((part): Fields[] => {
    if (part["type"] !== "tool_use") return [];
    const { id, name, input } = part["tool_use"] ?? part;
    return [{ type: "tool_call", id, name, args: input }];
  });
  return { content: texts(parts).join("\n"), id, ...(calls.length > 0 && { tool_calls: calls }) };
}

/** The message in the form of LangChain, without fields that are not JSON. */
export function plainDict(message: LangChainMessage): StoredMessage {
  const { content, id, name, ...fields } = message as LangChainMessage & Fields;
  const { tool_calls, invalid_tool_calls, tool_call_id, status } = fields as Fields;
  const data = { content, id, name, tool_calls, invalid_tool_calls, tool_call_id, status };
  return (dumpOf(message) ?? asJson({ type: message.getType(), data })) as StoredMessage;
}

/** The role and the content of a message, as they are stored. */
function converted(message: LangChainMessage, id: string): Message {
  return asJson({ ...toRecto(message), id }) as Message;
}

function dumpOf(message: LangChainMessage): Fields | undefined {
  const dump = message.toDict();
  try {
    encode(dump);
  } catch (error) {
    if (error instanceof InvalidRequest) return undefined;
    throw error;
  }
  return dump.data === undefined ? undefined : (asJson(dump) as Fields);
}

/** A value as JSON: a number that JSON does not have becomes a text, and half of a surrogate pair U+FFFD. */
function asJson(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, field: unknown) => {
      if (typeof field === "string") return field.replace(/\p{Surrogate}/gu, "\ufffd");
      const isNumber = typeof field === "number" && Number.isFinite(field);
      return isNumber || (typeof field !== "number" && typeof field !== "bigint") ? field : String(field);
    }),
  );
}

function hash(content: unknown[]): string {
  return createHash("sha256").update(JSON.stringify(content)).digest("hex");
}
