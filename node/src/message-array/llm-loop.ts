import { RectoError } from "../errors.js";
import type { ConversationManager } from "./conversation-manager.js";
import type { LLMMessage } from "./types.js";

/** Sends messages to a model and returns its answer. */
export interface LLMExecutor {
  executeLLMCall(messages: LLMMessage[], options: Record<string, any>): Promise<LLMMessage>;
}

export interface ToolCall {
  id: string;
  name: string;
  input: any;
}

export interface LLMLoopOptions {
  /** Maximum number of model calls per loop. Default: 50. */
  maxTurns?: number;
  /** Passed to every model call. */
  callOptions?: Record<string, any>;
}

/** The model loop: calls a model with the visible messages, and runs its tools, until it calls none. */
export class LLMExecutionCoordinator {
  readonly #executor: LLMExecutor;
  readonly #runTool: ((call: ToolCall) => Promise<LLMMessage>) | undefined;
  readonly #options: LLMLoopOptions;

  constructor(executor: LLMExecutor, runTool?: (call: ToolCall) => Promise<LLMMessage>, options: LLMLoopOptions = {}) {
    this.#executor = executor;
    this.#runTool = runTool;
    this.#options = options;
  }

  /** Returns the last answer, which calls no tool. */
  async executeLLMLoop(conversation: ConversationManager, userMessage?: LLMMessage): Promise<LLMMessage> {
    const { maxTurns = 50, callOptions = {} } = this.#options;
    if (userMessage) conversation.addMessage(userMessage);
    for (let turn = 0; turn < maxTurns; turn++) {
      await conversation.checkTokenUsage();
      const answer = await this.#executor.executeLLMCall(conversation.getMessages(), callOptions);
      conversation.addMessage(answer);
      const calls = toolCallsOf(answer);
      const run = this.#runTool;
      if (calls.length === 0 || !run) return answer;
      const results = await Promise.allSettled(calls.map((call) => run(call)));
      // A call without a result would be refused by most providers, so a failure is a result too.
      const messages = results.map((result, at) =>
        result.status === "fulfilled" ? result.value : failed(calls[at]!, result.reason),
      );
      conversation.addMessage(messages);
    }
    throw new RectoError({
      code: "upstream",
      message: `the model called tools in each of ${maxTurns} turns; raise maxTurns`,
    });
  }
}

/** The tool calls of a message: parts in both forms, and the field `toolCalls`. */
function toolCallsOf(message: LLMMessage): ToolCall[] {
  const parts = Array.isArray(message.content) ? (message.content as Record<string, any>[]) : [];
  const uses = parts.filter((part) => part["type"] === "tool_use").map((part) => part["tool_use"] ?? part);
  const calls = uses.map(({ id, name, input }) => ({ id, name, input }));
  for (const { id, function: called } of message.toolCalls ?? []) {
    calls.push({ id, name: called.name, input: inputOf(called.arguments) });
  }
  return calls;
}

/** The arguments of a call. Models sometimes write text that is not JSON; the tool gets it as it is. */
function inputOf(text: string): unknown {
  try {
    return JSON.parse(text || "{}");
  } catch {
    return text;
  }
}

function failed(call: ToolCall, reason: unknown): LLMMessage {
  const content = reason instanceof Error ? reason.message : String(reason);
  return { role: "tool", content: [{ type: "tool_result", tool_use_id: call.id, content, is_error: true }] };
}
