import { asList } from "../checks.js";
import { Store } from "../store.js";
import type { ConversationManager } from "./conversation-manager.js";
import { seedError, ValidationError } from "./errors.js";
import type {
  ContextModificationConfig,
  ContextModificationOperation,
  ContextProcessorNodeConfig,
  LLMMessage,
  LLMMessageRole,
  MessageOperationConfig,
  MessageOperationResult,
  TruncateOptions,
} from "./types.js";

const NODE_OPERATIONS: readonly string[] = ["truncate", "insert", "replace", "clear", "filter"];
const MODIFICATIONS: readonly string[] = ["insert", "delete", "replace", "compress", "batch_start", "batch_end"];

/** Applies a context-processor node to a conversation. */
export function contextProcessorHandler(
  manager: ConversationManager,
  config: ContextProcessorNodeConfig,
): MessageOperationResult {
  return manager.execute(config);
}

export function handleTruncateOperation(manager: ConversationManager, config: TruncateOptions): void {
  if (!config) throw new ValidationError("Truncate configuration is required", "config");
  manager.execute({ operation: "truncate", truncate: config });
}

/** The newest visible messages, of one role if one is given. */
export function getRecentMessages(manager: ConversationManager, n: number, role?: LLMMessageRole): LLMMessage[] {
  return role ? manager.getRecentMessagesByRole(role, n) : manager.getRecentMessages(n);
}

/** Applies modifications to conversations. */
export class ContextProcessorNodeHandler {
  async handleContextOperation(
    manager: ConversationManager,
    operation: ContextModificationOperation,
    indices: number[],
    data?: any,
  ): Promise<void> {
    manager.execute({ operation, indices, data });
  }

  /** Applies all operations or none of them. */
  async handleBatchOperations(manager: ConversationManager, operations: ContextModificationConfig[]): Promise<void> {
    if (asList(operations, "operations").length > 0) manager.executeAll(operations);
  }

  rollbackContextOperation(manager: ConversationManager, batch: number): void {
    manager.rollbackToBatch(batch);
  }
}

/** Throws a `ValidationError` if the configuration of a node is not valid. */
export function validateContextProcessorNodeConfig(config: unknown): asserts config is ContextProcessorNodeConfig {
  const { operation } = (typeof config === "object" && config !== null ? config : {}) as { operation?: unknown };
  if (typeof operation !== "string" || !NODE_OPERATIONS.includes(operation)) {
    throw new ValidationError(`operation must be one of ${NODE_OPERATIONS.join(", ")}`, "operation");
  }
  const section = (config as Record<string, unknown>)[operation];
  if (operation !== "clear" && (typeof section !== "object" || section === null)) {
    throw new ValidationError(`the section "${operation}" is required`, operation);
  }
  checkShape(config);
}

/** The operation of a node in the form of the message array. */
export function transformContextProcessorNodeConfig(config: ContextProcessorNodeConfig): MessageOperationConfig {
  validateContextProcessorNodeConfig(config);
  if (config.operation === "insert" && config.insert?.position === -1) {
    return { operation: "APPEND", messages: config.insert.messages } as MessageOperationConfig;
  }
  const operation = config.operation.toUpperCase() as MessageOperationConfig["operation"];
  return { operation, ...config[config.operation] };
}

/** Throws a `ValidationError` if the arguments of a modification cannot belong together. */
export function validateOperation(operation: ContextModificationOperation, indices: number[], data?: any): void {
  if (!MODIFICATIONS.includes(operation)) {
    const given = typeof operation === "string" ? operation : typeof operation;
    throw new ValidationError(`Invalid operation: ${given}`, "operation");
  }
  if (!Array.isArray(indices) || indices.some((index) => !Number.isSafeInteger(index) || index < 0)) {
    throw new ValidationError("Invalid indices", "indices");
  }
  if ((operation === "insert" || operation === "replace") && !data) {
    throw new ValidationError("Data required for insert and replace operations", "data");
  }
  if ((operation === "batch_start" || operation === "batch_end") && indices.length !== 1) {
    throw new ValidationError("Single index required for batch operations", "indices");
  }
}

/** Errors about the shape of an operation. All others depend on the conversation. */
const SHAPE_ERRORS = ["invalid_json", "invalid_operation", "invalid_message", "empty_content", "invalid_range"];
let empty: Store | undefined;

/** Checks an operation with the engine, which checks the shape before anything else. */
function checkShape(operation: unknown): void {
  if (!empty) {
    empty = Store.openSync("memory:");
    empty.requestSync({ create: "empty", settings: { counter: "approx" } });
  }
  try {
    empty.requestSync({ conversation: "empty", op: operation, dryRun: true });
  } catch (error) {
    if (SHAPE_ERRORS.includes((error as { code?: string }).code ?? "invalid_json")) throw seedError(error);
  }
}
