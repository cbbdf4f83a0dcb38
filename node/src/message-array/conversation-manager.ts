import type { Outcome } from "../types.js";
import { ValidationError } from "./errors.js";
import { MessageIndexManager, TypeIndexManager } from "./indices.js";
import { StoredConversation, type StorageOptions } from "./stored.js";
import type {
  AnyOperation,
  CompressionConfig,
  LLMMessage,
  LLMMessageRole,
  MessageArrayStats,
  MessageMarkMap,
  MessageOperationResult,
} from "./types.js";

export interface ConversationManagerOptions extends StorageOptions {
  tokenLimit?: number;
  compressionConfig?: CompressionConfig;
  /** The tools, which a system message describes. */
  availableTools?: { name: string; description: string }[];
  /** The first line of the tool description. Default: `可用工具:`, as in the seeds. */
  heading?: string;
}

const SEED_HEADING = "可用工具:";
const DEFAULT_STRATEGY = "keep-system-and-recent";
/** The operation FIT of each strategy that needs no model. */
const STRATEGIES: Record<string, Record<string, unknown>> = {
  "keep-recent": { keepSystem: false },
  "keep-system-and-recent": {},
  "sliding-window": { startOn: "user" },
};

/** A conversation: all messages, and those of them that the model reads. */
export class ConversationManager {
  readonly #stored: StoredConversation;
  readonly #types: TypeIndexManager;
  readonly indexManager: MessageIndexManager;

  constructor(options: ConversationManagerOptions = {}) {
    const { tokenLimit, compressionConfig, availableTools, heading = SEED_HEADING, ...storage } = options;
    const compression = compressionConfig && { ...compressionConfig, strategy: strategyOf(compressionConfig) };
    const settings = { heading, tokenLimit, compression, tools: availableTools } as Record<string, unknown>;
    this.#stored = new StoredConversation(storage, settings);
    this.indexManager = new MessageIndexManager(this);
    this.#types = new TypeIndexManager(() => this.getMarkMap());
  }

  // Messages

  /** Appends a message, or a list, and returns the number of all messages. */
  addMessage(message: LLMMessage | LLMMessage[]): number {
    const messages = Array.isArray(message) ? message : [message];
    return this.apply({ operation: "APPEND", messages }).stats.totalMessages;
  }

  /** The visible messages. */
  getMessages(): LLMMessage[] {
    return this.#stored.messages({});
  }

  /** All messages, also the hidden ones. The list is a copy: REPLACE changes a message. */
  getAllMessages(): LLMMessage[] {
    return this.#stored.messages({ scope: "all" });
  }

  /** The visible messages. */
  getUncompressedMessages(): LLMMessage[] {
    return this.getMessages();
  }

  getRecentMessages(n: number): LLMMessage[] {
    return this.#stored.messages({ last: n });
  }

  getMessagesByRange(start: number, end: number): LLMMessage[] {
    return this.#stored.messages({ range: { start, end } });
  }

  getMessagesByRole(role: LLMMessageRole): LLMMessage[] {
    return this.#stored.messages({ role });
  }

  getRecentMessagesByRole(role: LLMMessageRole, n: number): LLMMessage[] {
    return this.#stored.messages({ role, last: n });
  }

  getRecentMessagesByRoles(roles: LLMMessageRole[], n: number): LLMMessage[] {
    return this.#stored.messages({ roles, last: n });
  }

  getMessagesByRoleRange(role: LLMMessageRole, start: number, end: number): LLMMessage[] {
    return this.#stored.messages({ role, range: { start, end } });
  }

  /** Messages of a role with startTime ≤ timestamp < endTime. */
  getMessagesByRoleAndTimeRange(role: LLMMessageRole, startTime: number, endTime: number): LLMMessage[] {
    return this.#stored.messages({ role, from: startTime, to: endTime });
  }

  getMessageCountByRole(role: LLMMessageRole): number {
    return this.#stored.request({ count: { role } }).count;
  }

  /** All messages of a role, also the hidden ones. */
  filterMessagesByRole(role: string): LLMMessage[] {
    return this.#stored.messages({ role, scope: "all" });
  }

  markMessage(index: number, mark: string): void {
    this.apply({ operation: "MARK", indices: [index], mark });
  }

  getMarkedMessagesByRole(role: LLMMessageRole, mark: string): LLMMessage[] {
    return this.#stored.messages({ role, mark });
  }

  // Indices and batches

  getMarkMap(): MessageMarkMap {
    return this.#stored.request({ markMap: true });
  }

  getStats(): MessageArrayStats {
    return this.#stored.request({ stats: true });
  }

  getIndexManager(): MessageIndexManager {
    return this.indexManager;
  }

  getTypeIndexManager(): TypeIndexManager {
    return this.#types;
  }

  /** Makes the view exactly these messages, in this order, in a new batch. */
  setOriginalIndices(indices: number[]): void {
    this.indexManager.setOriginalIndices(indices);
  }

  clearMessages(keepSystemMessage = true): void {
    this.apply({ operation: "CLEAR", keepSystemMessage });
  }

  /**
   * Opens a batch without the messages below the boundary. Pinned messages stay, and the tool description stays or
   * is added.
   */
  startNewBatchWithInitialTools(boundaryIndex: number): void {
    this.indexManager.openBatch({ operation: "BATCH_START", boundary: boundaryIndex, withTools: true });
  }

  /** The system message that describes the tools; `null` without tools. */
  getInitialToolDescriptionMessage(): LLMMessage | null {
    const { heading, tools } = this.#stored.request<{ heading: string; tools: { name: string; description: string }[] }>({
      settings: true,
    });
    if (tools.length === 0) return null;
    const lines = tools.map((tool) => `- ${tool.name}: ${tool.description}`);
    return { role: "system", content: [heading, ...lines].join("\n") };
  }

  rollbackToBatch(targetBatch: number): void {
    this.indexManager.rollbackToBatch(targetBatch);
  }

  /** Overwrites the messages that are hidden. Indices stay; earlier versions show placeholders. */
  cleanupCompressedMessages(): void {
    this.#stored.request({ prune: { keepVersions: 1 } });
  }

  /** Checks all stored data of the conversation. */
  checkConsistency(): boolean {
    return this.#stored.request({ verify: true }).sound;
  }

  // Operations and tokens

  /** Applies an operation in any of the three input forms. */
  execute<O extends AnyOperation>(operation: O): MessageOperationResult {
    return this.#stored.execute(operation);
  }

  /** Applies operations as one atomic request. */
  executeAll(operations: readonly AnyOperation[]): MessageOperationResult {
    return this.#stored.execute(operations);
  }

  /** Compares the tokens with the settings, and compresses the view if it is above the threshold. */
  async checkTokenUsage(): Promise<{ tokens: number; limit?: number; compressed: boolean }> {
    const check = this.#stored.request({ tokenCheck: true });
    const limit = check.limit === null ? {} : { limit: check.limit as number };
    if (!check.compressionRequested) return { tokens: check.tokens, ...limit, compressed: false };
    return { tokens: this.#compress(), ...limit, compressed: true };
  }

  /** Applies an operation. For the classes of this module. */
  apply(operation: Record<string, unknown>, options: { dryRun?: boolean } = {}): Outcome {
    return this.#stored.request({ op: operation, ...options });
  }

  /** The number of the newest version. */
  currentVersion(): number {
    return this.#stored.request({ log: { limit: 1 } }).versions[0].version;
  }

  #compress(): number {
    const { compression } = this.#stored.request<{ compression: CompressionConfig }>({ settings: true });
    let tokens = Infinity;
    for (const name of strategyOf(compression).split(",")) {
      if (tokens <= compression.targetTokens) break;
      const fit = { operation: "FIT", maxTokens: compression.targetTokens, ...STRATEGIES[name.trim()] };
      tokens = this.apply({ ...fit, description: `compression: ${name.trim()}` }).stats.tokens;
    }
    return tokens;
  }
}

function strategyOf({ strategy = DEFAULT_STRATEGY }: CompressionConfig): string {
  const unknown = strategy.split(",").find((name) => !Object.hasOwn(STRATEGIES, name.trim()));
  if (unknown === undefined) return strategy;
  const allowed = Object.keys(STRATEGIES).join(", ");
  throw new ValidationError(
    `the strategy "${unknown.trim()}" is not available here; allowed are ${allowed}`,
    "compressionConfig.strategy",
  );
}
