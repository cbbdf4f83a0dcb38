/** The types of the seeds. Optional fields that no seed has are Recto's own. */

export type MessageRole = "system" | "user" | "assistant" | "tool";
export type LLMMessageRole = MessageRole;

export type ContentPart =
  | { type: "text"; text?: string }
  | { type: "image"; image_url?: { url: string } }
  | { type: "tool_use"; tool_use?: { id: string; name: string; input: Record<string, any> } }
  | { type: "tool_result"; tool_result?: { tool_use_id: string; content: string | { type: string; text: string }[] } }
  | { type: "tool_use"; id: string; name: string; input: unknown }
  | { type: "tool_result"; tool_use_id: string; content?: unknown; is_error?: boolean }
  | { type: string; [field: string]: any };

export type MessageContent = string | ContentPart[];

export interface Message {
  role: MessageRole;
  content: MessageContent;
  id?: string;
  timestamp?: number;
  metadata?: Record<string, any>;
}

/** A message of the model loop. The two fields are kept; they are no tool calls for the engine. */
export type LLMMessage = Message & {
  toolCalls?: { id: string; function: { name: string; arguments: string } }[];
  toolCallId?: string;
};

export interface MessageMarkMap {
  originalIndices: number[];
  typeIndices: { system: number[]; user: number[]; assistant: number[]; tool: number[] };
  batchBoundaries: number[];
  boundaryToBatch: number[];
  currentBatch: number;
}

export interface BatchSnapshot {
  batchIndex: number;
  timestamp: number;
  messages: Message[];
  messageCount: number;
  description?: string;
}
export type BatchSnapshotArray = BatchSnapshot[];

export interface MessageArrayState {
  messages: Message[];
  batchSnapshots: BatchSnapshot[];
  currentBatchIndex: number;
  totalMessageCount: number;
}

export interface MessageArrayStats {
  totalMessages: number;
  currentBatchMessages: number;
  totalBatches: number;
  currentBatchIndex: number;
  tokens?: number;
}

export interface MessageOperationResult {
  /** The state after the operation. It is read when it is first used, and is always the state of `version`. */
  readonly state: MessageArrayState;
  affectedBatchIndex: number;
  stats: MessageArrayStats;
  version?: number;
  changed?: boolean;
  hidden?: number[];
  shown?: number[];
  added?: number[];
  sharedPrefix?: { messages: number; tokens: number };
  warnings?: { code: string; indices: number[]; message: string }[];
}

export type MessageOperationType = "APPEND" | "INSERT" | "REPLACE" | "TRUNCATE" | "CLEAR" | "FILTER" | "ROLLBACK";
/** Operations that no seed has in this form. */
export type RectoOperation =
  | "DELETE"
  | "COMPRESS"
  | "ARRANGE"
  | "RESTORE"
  | "FIT"
  | "BATCH_START"
  | "BATCH_END"
  | "MARK"
  | "UNMARK"
  | "UNDO"
  | "REDO";

export interface MessageOperationConfig {
  operation: MessageOperationType | RectoOperation;
  description?: string;
}
export interface AppendMessageOperation extends MessageOperationConfig {
  operation: "APPEND";
  messages: Message[];
}
export interface InsertMessageOperation extends MessageOperationConfig {
  operation: "INSERT";
  position: number;
  messages: Message[];
}
export interface ReplaceMessageOperation extends MessageOperationConfig {
  operation: "REPLACE";
  index: number;
  message: Message;
}
export interface TruncateOptions {
  keepFirst?: number;
  keepLast?: number;
  removeFirst?: number;
  removeLast?: number;
  range?: { start: number; end: number };
  role?: MessageRole;
  keepOthers?: boolean;
  scope?: "visible" | "all";
}
export interface TruncateMessageOperation extends MessageOperationConfig, TruncateOptions {
  operation: "TRUNCATE";
}
export interface ClearMessageOperation extends MessageOperationConfig {
  operation: "CLEAR";
  keepSystemMessage?: boolean;
}
export interface FilterOptions {
  roles?: MessageRole[];
  contentContains?: string[];
  contentExcludes?: string[];
}
export interface FilterMessageOperation extends MessageOperationConfig, FilterOptions {
  operation: "FILTER";
}
export interface RollbackMessageOperation extends MessageOperationConfig {
  operation: "ROLLBACK";
  targetBatchIndex: number;
}

/** A context-processor node: an operation, and a section with its name. */
export interface ContextProcessorNodeConfig {
  operation: "truncate" | "insert" | "replace" | "clear" | "filter";
  truncate?: TruncateOptions;
  /** `position: -1` appends. */
  insert?: { position: number; messages: LLMMessage[] };
  replace?: { index: number; message: LLMMessage };
  filter?: FilterOptions;
  clear?: { keepSystemMessage?: boolean };
}

export type ContextModificationOperation = "insert" | "delete" | "replace" | "compress" | "batch_start" | "batch_end";
export interface ContextModificationConfig {
  operation: ContextModificationOperation;
  indices: number[];
  data?: LLMMessage | LLMMessage[];
  batch?: number;
}
export type ContinueFromTriggerNodeConfig = MessageOperationConfig | ContextProcessorNodeConfig;

/** An operation in any of the three input forms. */
export type AnyOperation = MessageOperationConfig | ContextProcessorNodeConfig | ContextModificationConfig;

export interface CompressionConfig {
  enabled: boolean;
  threshold: number;
  targetTokens: number;
  /** `keep-recent`, `keep-system-and-recent` (default) or `sliding-window`, or several with commas. */
  strategy?: string;
}
