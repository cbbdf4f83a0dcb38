/** The messages of the AI SDK, as far as this package reads them. Both major versions have this form. */
export interface ModelMessage {
  role: string;
  content: unknown;
}

type Part = Record<string, any>;

/** The parts of a message; a string is one text part. */
export function partsOf(message: ModelMessage): Part[] {
  if (typeof message.content === "string") return [{ type: "text", text: message.content }];
  return Array.isArray(message.content) ? (message.content as Part[]) : [];
}

/** A message of Recto with the same texts, tool calls and media, for counting and for pairing calls with results. */
export function toRecto(message: ModelMessage): { role: string; content: Part[] } {
  const content = partsOf(message).map(toRectoPart);
  // Frameworks store empty messages; Recto refuses them.
  return { role: message.role, content: content.length > 0 ? content : [{ type: "empty" }] };
}

function toRectoPart(part: Part): Part {
  switch (part["type"]) {
    case "text":
      return { type: "text", text: String(part["text"] ?? "") };
    case "reasoning":
      return { type: "thinking", text: String(part["text"] ?? "") };
    case "image":
    case "file":
      // Counted as media; its bytes are not needed for that.
      return { type: "image" };
    case "tool-call":
      return { type: "tool_use", id: part["toolCallId"], name: part["toolName"], input: part["input"] ?? {} };
    case "tool-result":
      return { type: "tool_result", tool_use_id: part["toolCallId"], content: outputText(part["output"]) };
    default:
      return { type: "other" };
  }
}

/** The text of a tool's output, as it is counted. */
function outputText(output: unknown): string {
  const { type, value } = (output ?? {}) as { type?: string; value?: unknown };
  if (typeof value === "string") return value;
  if (type === "content" && Array.isArray(value)) {
    return value.map((part: Part) => (typeof part["text"] === "string" ? part["text"] : "")).join("\n");
  }
  return value === undefined ? "" : JSON.stringify(value);
}

/**
 * A list in which each tool call is answered before the next message that is not a result, and each result has
 * a call. The AI SDK and the providers refuse other lists. Messages that need no repair are the given objects.
 * Results that were made before are used again, so that equal lists give equal objects.
 */
export function repair<M extends ModelMessage>(messages: readonly M[], made: Map<string, M>): M[] {
  const results = new Map<string, Part>();
  for (const message of messages) {
    if (message.role !== "tool") continue;
    for (const part of partsOf(message)) if (part["type"] === "tool-result") results.set(part["toolCallId"], part);
  }
  const repaired: M[] = [];
  const pending = new Map<string, string>();
  /** Ids of calls that the provider runs, and of requests for an approval. */
  const known = new Set<string>();
  const answerPending = () => {
    for (const [id, name] of pending) repaired.push(answer(id, name, results.get(id), made));
    pending.clear();
  };
  for (const message of messages) {
    if (message.role === "tool") {
      const kept = partsOf(message).filter((part) => {
        // The SDK has run an approved tool before the step; the result is in the next message.
        if (part["type"] === "tool-approval-response") return known.has(part["approvalId"]);
        if (part["type"] !== "tool-result") return true;
        return pending.delete(part["toolCallId"]) || known.has(part["toolCallId"]);
      });
      if (kept.length === partsOf(message).length) repaired.push(message);
      else if (kept.length > 0) repaired.push({ ...message, content: kept });
      continue;
    }
    answerPending();
    repaired.push(message);
    if (message.role !== "assistant") continue;
    for (const part of partsOf(message)) {
      // The result of a call that the provider runs is in the same message, unless the call was denied.
      if (part["type"] === "tool-call" && part["providerExecuted"]) known.add(part["toolCallId"]);
      else if (part["type"] === "tool-call") pending.set(part["toolCallId"], part["toolName"]);
      if (part["type"] === "tool-approval-request") known.add(part["approvalId"]);
      if (part["type"] === "tool-result") pending.delete(part["toolCallId"]);
    }
  }
  answerPending();
  return repaired;
}

function answer<M extends ModelMessage>(id: string, name: string, result: Part | undefined, made: Map<string, M>): M {
  const before = made.get(id);
  if (before) return before;
  const output = { type: "error-text", value: "The tool call was interrupted; it has no result." };
  const part = result ?? { type: "tool-result", toolCallId: id, toolName: name, output };
  const message = { role: "tool", content: [part] } as unknown as M;
  made.set(id, message);
  return message;
}
