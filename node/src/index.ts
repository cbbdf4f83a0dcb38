/**
 * Recto: versioned context for LLM agents.
 *
 * ```js
 * import { Store } from "recto-context";
 * const store = await Store.open("memory:");
 * const conversation = await store.create("support");
 * await conversation.append({ role: "user", content: "Checkout fails!" });
 * await conversation.messages();
 * ```
 */
export { Conversation, type At, type ChangeOptions, type Operations, type ProviderOptions } from "./conversation.js";
export {
  BatchNotFound,
  BudgetTooSmall,
  ConversationExists,
  ConversationNotFound,
  InvalidRequest,
  NotFound,
  NothingToRevert,
  PinnedEntry,
  RectoError,
  StorageError,
  VersionConflict,
  VersionNotFound,
} from "./errors.js";
export type { Fitted, FitOptions, ListOptions, ListRepair, Lists, RepairOptions } from "./lists.js";
export { countTokens, fit, repair } from "./lists-native.js";
export { schema, Store, type OpenOptions, type Request } from "./store.js";
export type * from "./types.js";
