import { BatchNotFound } from "../errors.js";
import { StoredConversation, type StorageOptions } from "./stored.js";
import type {
  BatchSnapshot,
  Message,
  MessageArrayState,
  MessageArrayStats,
  MessageOperationConfig,
  MessageOperationResult,
  RollbackMessageOperation,
} from "./types.js";

/** An array of messages whose changes open batches. */
export interface MessageArrayManager {
  execute<O extends MessageOperationConfig>(operation: O): MessageOperationResult;
  getState(): MessageArrayState;
  getCurrentMessages(): Message[];
  getStats(): MessageArrayStats;
  rollback(batchIndex: number): MessageOperationResult;
  /** `null` if the live path does not have the batch. */
  getBatchSnapshot(batchIndex: number): BatchSnapshot | null;
}

/**
 * A message array on a store. No operation copies the array, and every earlier state can be restored.
 *
 * ```js
 * const manager = new MessageArrayManagerImpl([{ role: "user", content: "Hello" }]);
 * const result = manager.execute({ operation: "TRUNCATE", keepLast: 20 });
 * manager.rollback(0);
 * ```
 */
export class MessageArrayManagerImpl implements MessageArrayManager {
  readonly #stored: StoredConversation;

  constructor(initialMessages: Message[] = [], options: StorageOptions = {}) {
    this.#stored = new StoredConversation(options, {}, initialMessages);
  }

  execute<O extends MessageOperationConfig>(operation: O): MessageOperationResult {
    return this.#stored.execute(operation);
  }

  getState(): MessageArrayState {
    return this.#stored.request({ state: true });
  }

  getCurrentMessages(): Message[] {
    return this.#stored.messages({});
  }

  getStats(): MessageArrayStats {
    return this.#stored.request({ stats: true });
  }

  rollback(batchIndex: number): MessageOperationResult {
    const rollback: RollbackMessageOperation = { operation: "ROLLBACK", targetBatchIndex: batchIndex };
    return this.#stored.execute(rollback);
  }

  getBatchSnapshot(batchIndex: number): BatchSnapshot | null {
    if (Number.isInteger(batchIndex) && batchIndex < 0) return null;
    try {
      return this.#stored.request({ snapshot: batchIndex });
    } catch (error) {
      if (error instanceof BatchNotFound) return null;
      throw error;
    }
  }
}
