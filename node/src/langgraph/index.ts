/**
 * Recto for LangGraph: a checkpointer that keeps the messages of another checkpointer in a Recto store.
 *
 * ```js
 * import { MemorySaver } from "@langchain/langgraph";
 * import { Store } from "recto-context";
 * import { RectoSaver } from "recto-context/langgraph";
 *
 * const saver = new RectoSaver(new MemorySaver(), await Store.open("sqlite:conversations.db"));
 * const agent = createAgent({ model, tools, checkpointer: saver });
 * ```
 */
export { RectoSaver, type SaverOptions } from "./saver.js";
