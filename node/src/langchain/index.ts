/**
 * Recto for LangChain: a middleware that bounds and repairs what the model reads.
 *
 * ```js
 * import { createAgent } from "langchain";
 * import { Store } from "recto-context";
 * import { rectoMiddleware } from "recto-context/langchain";
 *
 * const context = await rectoMiddleware(await Store.open("sqlite:conversations.db"), { maxTokens: 100_000 });
 * const agent = createAgent({ model, tools, middleware: [context.middleware], checkpointer });
 * ```
 */
export { rectoMiddleware, RectoContext, type ContextOptions, type ContextReport } from "./middleware.js";
