/**
 * The message array, the conversation manager and the context processor of the seeds, on Recto.
 *
 * All methods are synchronous unless they return a promise. Messages are kept in memory, or in any store.
 */
export { ConversationManager, type ConversationManagerOptions } from "./conversation-manager.js";
export {
  contextProcessorHandler,
  ContextProcessorNodeHandler,
  getRecentMessages,
  handleTruncateOperation,
  transformContextProcessorNodeConfig,
  validateContextProcessorNodeConfig,
  validateOperation,
} from "./context-processor.js";
export { RectoError, ValidationError } from "./errors.js";
export { MessageIndexManager, TypeIndexManager } from "./indices.js";
export { LLMExecutionCoordinator, type LLMExecutor, type LLMLoopOptions, type ToolCall } from "./llm-loop.js";
export { MessageArrayManagerImpl, type MessageArrayManager } from "./message-array.js";
export type { StorageOptions } from "./stored.js";
export type * from "./types.js";
