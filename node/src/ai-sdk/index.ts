/**
 * Recto for the AI SDK (versions 6 and 7): a budget for each step, and a store for chats.
 *
 * ```js
 * import { generateText } from "ai";
 * import { prepareStep } from "recto-context/ai-sdk";
 *
 * const result = await generateText({ model, tools, messages, prepareStep: prepareStep({ maxTokens: 100_000 }) });
 * ```
 */
import { Store, type OpenOptions } from "../store.js";
import { ChatStore } from "./chat.js";

export { Chat, ChatStore, type UIMessage } from "./chat.js";
export type { ModelMessage } from "./model-messages.js";
export { prepareStep, type PrepareStepOptions } from "./prepare-step.js";

export const recto = {
  /** Opens a store for chats. */
  async open(address: string, options: OpenOptions = {}): Promise<ChatStore> {
    return new ChatStore(await Store.open(address, options));
  },
};
