// Compiled only: code as it is written for the seeds.

import {
  ContextProcessorNodeHandler,
  ConversationManager,
  LLMExecutionCoordinator,
  MessageArrayManagerImpl,
  TypeIndexManager,
  contextProcessorHandler,
  getRecentMessages,
  handleTruncateOperation,
  transformContextProcessorNodeConfig,
  validateContextProcessorNodeConfig,
  validateOperation,
  ValidationError,
  type AppendMessageOperation,
  type BatchSnapshot,
  type BatchSnapshotArray,
  type ClearMessageOperation,
  type ContextModificationConfig,
  type ContextProcessorNodeConfig,
  type ContinueFromTriggerNodeConfig,
  type ConversationManagerOptions,
  type FilterMessageOperation,
  type InsertMessageOperation,
  type LLMMessage,
  type LLMMessageRole,
  type Message,
  type MessageArrayManager,
  type MessageArrayState,
  type MessageArrayStats,
  type MessageMarkMap,
  type MessageOperationConfig,
  type MessageOperationResult,
  type MessageOperationType,
  type ReplaceMessageOperation,
  type RollbackMessageOperation,
  type TruncateMessageOperation,
} from "recto-context/message-array";

const message: Message = { role: "user", content: "x", id: "1", timestamp: 1, metadata: { a: 1 } };
const append: AppendMessageOperation = { operation: "APPEND", messages: [message] };
const insert: InsertMessageOperation = { operation: "INSERT", position: 1, messages: [message] };
const replace: ReplaceMessageOperation = { operation: "REPLACE", index: 0, message };
const truncate: TruncateMessageOperation = { operation: "TRUNCATE", keepLast: 1, role: "user" };
const clear: ClearMessageOperation = { operation: "CLEAR", keepSystemMessage: true };
const filter: FilterMessageOperation = { operation: "FILTER", roles: ["user"], contentContains: ["x"] };
const rollback: RollbackMessageOperation = { operation: "ROLLBACK", targetBatchIndex: 0 };

export function array(manager: MessageArrayManager = new MessageArrayManagerImpl([message])): number {
  const operations: MessageOperationConfig[] = [append, insert, replace, truncate, clear, filter, rollback];
  const kinds: MessageOperationType[] = ["APPEND", "INSERT", "REPLACE", "TRUNCATE", "CLEAR", "FILTER", "ROLLBACK"];
  const results: MessageOperationResult[] = operations.map((operation) => manager.execute(operation));
  results.push(manager.execute({ operation: "APPEND", messages: [message] }));
  const state: MessageArrayState = results[0]!.state;
  const stats: MessageArrayStats = manager.getStats();
  const snapshots: BatchSnapshotArray = state.batchSnapshots;
  const snapshot: BatchSnapshot | null = manager.getBatchSnapshot(0);
  manager.rollback(0).affectedBatchIndex.toFixed();
  manager.getCurrentMessages().map((one) => one.role);
  return stats.totalMessages + snapshots.length + (snapshot?.messageCount ?? 0) + kinds.length;
}

/** Another implementation of the interface, as in seed 004. */
export class Other implements MessageArrayManager {
  execute(operation: MessageOperationConfig): MessageOperationResult {
    throw new Error(`Unsupported operation type: ${operation.operation}`);
  }
  getState(): MessageArrayState {
    return { messages: [], batchSnapshots: [], currentBatchIndex: 0, totalMessageCount: 0 };
  }
  getCurrentMessages(): Message[] {
    return [];
  }
  getStats(): MessageArrayStats {
    return { totalMessages: 0, currentBatchMessages: 0, totalBatches: 1, currentBatchIndex: 0 };
  }
  rollback(batchIndex: number): MessageOperationResult {
    return this.execute({ operation: "ROLLBACK", description: `${batchIndex}` });
  }
  getBatchSnapshot(): BatchSnapshot | null {
    return null;
  }
}

export async function conversation(): Promise<void> {
  const options: ConversationManagerOptions = {
    tokenLimit: 8000,
    compressionConfig: { enabled: true, threshold: 6000, targetTokens: 4000 },
    availableTools: [{ name: "a", description: "b" }],
  };
  const manager = new ConversationManager(options);
  const length: number = manager.addMessage(message);
  const markMap: MessageMarkMap = manager.getMarkMap();
  manager["indexManager"].markCompressed([0]);
  manager.getIndexManager().setOriginalIndices(markMap.originalIndices.slice(-length));
  const indices: Map<LLMMessageRole, number[]> = manager.getTypeIndexManager().getAllTypeIndices();
  new TypeIndexManager().addIndex("user", indices.size);
  const messages: LLMMessage[] = manager.getRecentMessagesByRole("user", 3);
  const node: ContextProcessorNodeConfig = { operation: "truncate", truncate: { role: "user", keepLast: 5 } };
  const trigger: ContinueFromTriggerNodeConfig = node;
  contextProcessorHandler(manager, node).stats.totalMessages.toFixed();
  handleTruncateOperation(manager, { keepLast: 1 });
  const unknown: unknown = trigger;
  validateContextProcessorNodeConfig(unknown);
  manager.execute(transformContextProcessorNodeConfig(unknown));
  const list: ContextModificationConfig[] = [{ operation: "batch_start", indices: [5], batch: 1 }];
  const handler = new ContextProcessorNodeHandler();
  await handler.handleBatchOperations(manager, list);
  await handler.handleContextOperation(manager, "insert", [], messages);
  handler.rollbackContextOperation(manager, 0);
  validateOperation("delete", [1]);
  const { tokens, compressed } = await manager.checkTokenUsage();
  const loop = new LLMExecutionCoordinator({ executeLLMCall: async (sent) => sent[0]! }, async () => message);
  await loop.executeLLMLoop(manager, message);
  if (compressed) throw new ValidationError(`${tokens}`, "field");
  getRecentMessages(manager, 3, "user").length.toFixed();
}
