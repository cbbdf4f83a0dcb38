/**
 * Recto for the OpenAI Agents SDK: a session that can be rewound and forked, and a budget for each model call.
 *
 * ```js
 * import { run } from "@openai/agents";
 * import { Store } from "recto-context";
 * import { RectoSession } from "recto-context/openai-agents";
 *
 * const session = await RectoSession.open("user-42", await Store.open("sqlite:conversations.db"));
 * await run(agent, "Why does checkout fail?", { session, callModelInputFilter: session.fit({ maxTokens: 100_000 }) });
 * ```
 */
export type { BudgetOptions } from "../growing-list.js";
export { fitInput } from "./fit-input.js";
export { RectoSession, type SessionOptions } from "./session.js";
