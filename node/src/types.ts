// Types of requests and responses. The names of fields are those of `docs/exec.md`.

export type Role = "system" | "user" | "assistant" | "tool";
export type Scope = "visible" | "all";
export type Provider = "anthropic" | "openai-chat" | "openai-responses" | "gemini" | "bedrock-converse";
export type CounterName = "o200k_base" | "cl100k_base" | "approx";

/** A message. Unknown fields are kept and returned. */
export interface Message {
  role: Role;
  content: string | ContentPart[];
  id?: string;
  /** Milliseconds since 1970. Default: the time of arrival. */
  timestamp?: number;
  metadata?: Record<string, any>;
  name?: string;
  [field: string]: any;
}

/** A part of a message's content. Parts of other types are kept as they are. */
export type ContentPart =
  | { type: "text"; text?: string }
  | { type: "image"; image_url?: { url: string } }
  | { type: "tool_use"; id: string; name: string; input: unknown }
  | { type: "tool_result"; tool_use_id: string; content?: unknown; is_error?: boolean }
  | { type: "tool_use"; tool_use?: { id: string; name: string; input: Record<string, any> } }
  | { type: "tool_result"; tool_result?: { tool_use_id: string; content: string | { type: string; text: string }[] } }
  | { type: string; [field: string]: any };

export interface Tool {
  name: string;
  description: string;
  [field: string]: any;
}

/** When and how the view is made shorter. */
export interface Compression {
  enabled: boolean;
  threshold: number;
  targetTokens: number;
  /** Default: `clear-tool-results,keep-system-and-recent`. */
  strategy?: string;
}

/** Settings of a new conversation. All have defaults. */
export interface Settings {
  /** Default: `o200k_base`. */
  counter?: CounterName;
  mediaTokens?: number;
  tools?: Tool[];
  heading?: string;
  tokenLimit?: number;
  compression?: Compression;
}

export interface CreateOptions extends Settings {
  /** Messages that are visible at version 0. */
  messages?: readonly Message[];
}

/** TRUNCATE takes the entries of `role`, or all, and applies the steps from `keepFirst` to `range` in this order. */
export interface Truncation {
  keepFirst?: number;
  keepLast?: number;
  removeFirst?: number;
  removeLast?: number;
  /** The half-open range [start, end). */
  range?: { start: number; end: number };
  role?: Role;
  keepOthers?: boolean;
  scope?: Scope;
}

/** Criteria of FILTER. An entry that satisfies all of them stays. */
export interface Criteria {
  roles?: Role[];
  contentContains?: string[];
  contentExcludes?: string[];
  scope?: Scope;
}

/** An operation of section 4 of the contract. The two older input forms are accepted too. */
export type Operation = { description?: string } & (
  | { operation: "APPEND"; messages: readonly Message[] }
  | { operation: "INSERT"; position: number; messages: readonly Message[] }
  | { operation: "REPLACE"; index: number; message: Message }
  | { operation: "DELETE" | "RESTORE" | "ARRANGE"; indices: readonly number[] }
  | { operation: "COMPRESS"; indices: readonly number[]; summary?: Message }
  | ({ operation: "TRUNCATE" } & Truncation)
  | ({ operation: "FILTER" } & Criteria)
  | { operation: "CLEAR"; keepSystemMessage?: boolean; scope?: Scope }
  | { operation: "FIT"; maxTokens: number; keepSystem?: boolean; startOn?: Role }
  | { operation: "BATCH_START"; boundary?: number; withTools?: boolean }
  | { operation: "BATCH_END"; targetBatchIndex?: number; carry?: "none" | "all" | Role[] }
  | { operation: "ROLLBACK"; targetBatchIndex: number }
  | { operation: "ROLLBACK"; targetVersion: number }
  | { operation: "MARK" | "UNMARK"; indices: readonly number[]; mark: string }
  | { operation: "UNDO" | "REDO" }
);

/** The context-processor node and the modification form (section 5 of the contract). */
export interface OlderForm {
  operation: "truncate" | "insert" | "replace" | "clear" | "filter" | "delete" | "compress" | "batch_start" | "batch_end";
  [field: string]: any;
}

/** A query (section 6 of the contract). */
export interface Query {
  scope?: Scope;
  role?: Role;
  roles?: Role[];
  contains?: string | string[];
  excludes?: string | string[];
  mark?: string;
  from?: number;
  to?: number;
  range?: { start: number; end: number };
  first?: number;
  last?: number;
  batchIndex?: number;
  version?: number;
}

/** Options of methods that change a conversation. */
export interface WriteOptions {
  /** The request fails with `VersionConflict` if this is not the newest version. */
  expectedVersion?: number;
  /** A request that is repeated with the same key is not applied again. */
  idempotencyKey?: string;
  /** JSON of at most 16 KiB that is stored with the version, and returned with it. */
  note?: unknown;
  /** Returns the outcome without making the change. */
  dryRun?: boolean;
  /** `["state"]` adds the state to the outcome. */
  return?: "state"[];
}

export interface Stats {
  totalMessages: number;
  currentBatchMessages: number;
  totalBatches: number;
  currentBatchIndex: number;
  tokens: number;
}

export interface Warning {
  code: string;
  indices: number[];
  message: string;
}

/** A log entry. `position` is missing if it is hidden. */
export interface Entry {
  index: number;
  position?: number;
  tokens: number;
  timestamp: number;
  marks?: string[];
  message: Message;
}

export interface BatchSnapshot {
  batchIndex: number;
  timestamp: number;
  description: string;
  messageCount: number;
  messages: Message[];
}

export interface State {
  messages: Message[];
  batchSnapshots: BatchSnapshot[];
  currentBatchIndex: number;
  /** The number of visible messages. */
  totalMessageCount: number;
}

/** The result of a change (section 7 of the contract). */
export interface Outcome {
  version: number;
  affectedBatchIndex: number;
  changed: boolean;
  hidden: number[];
  shown: number[];
  added: number[];
  stats: Stats;
  sharedPrefix: { messages: number; tokens: number };
  toolsChanged?: boolean;
  warnings: Warning[];
  dryRun?: boolean;
  state?: State;
}

/** The result of adding messages of a provider. */
export interface Appended extends Outcome {
  /** Content that could not be represented. */
  remarks: Remark[];
}

export interface ConversationInfo {
  name: string;
  id: string;
  version: number;
  /** The length of the log. */
  messages: number;
  created: number;
  updated: number;
  forkedFrom?: { id: string; version: number };
  /** The hash of the newest version and of all versions before it. */
  link: string;
}

export interface MarkedEntries {
  mark: string;
  indices: number[];
}

export interface Info extends ConversationInfo {
  stats: Stats;
  counter: string;
  tools: string[];
  marks: MarkedEntries[];
  warnings: Warning[];
  tokenLimit?: number;
}

export interface VersionInfo {
  version: number;
  operation: string;
  description: string;
  timestamp: number;
  /** The length of the view. */
  messages: number;
  /** The tokens of the view. */
  tokens: number;
  /** The current batch. */
  batch: number;
  /** The version that opened this batch. */
  batchOpenedBy: number;
  /** The length of the log. */
  log: number;
  /** The version whose state this version continues. Missing for version 0. */
  parent?: number;
  /** For UNDO and REDO: the version whose request was undone or redone. */
  target?: number;
  /** The time of the newest message that the version added. Missing if it added none. */
  saidAt?: number;
  /** The note that was given with the change. */
  note?: unknown;
}

export interface Blame {
  version: number;
  operation: string;
  description: string;
  timestamp: number;
  effect: string;
}

export interface DifferencePart {
  indices: number[];
  tokens: number;
}

export interface Difference {
  kept: { messages: number; tokens: number };
  hidden: DifferencePart;
  shown: DifferencePart;
  moved: DifferencePart;
}

/** A violated rule of a provider. `index` is the position in the view, `entry` the index in the log. */
export interface Finding {
  rule: string;
  severity: string;
  index: number;
  message: string;
  repair: string;
  entry: number;
}

/** A provider request with its repairs. */
export interface Rendered {
  request: Record<string, any>;
  repairs: Finding[];
  warnings: Warning[];
}

export interface SearchHit extends Entry {
  conversation: string;
}

export interface Verification {
  name: string;
  sound: boolean;
  versions: number;
  entries: number;
  /** The number of log entries that were erased or pruned. */
  erased: number;
  /** The hash of the newest version and of all versions before it. */
  link: string;
  faults: string[];
}

export interface StoreVerification {
  sound: boolean;
  conversations: Verification[];
  store: string[];
}

export interface TokenShare {
  name: string;
  messages: number;
  tokens: number;
}

export interface TokenShares {
  conversation: string;
  version: number;
  counter: string;
  messages: number;
  tokens: number;
  byRole: TokenShare[];
  byTool: TokenShare[];
  largest: Entry[];
}

export interface CheckedTokens {
  conversation: string;
  version: number;
  tokens: number;
  limit: number | null;
  threshold: number | null;
  targetTokens: number | null;
  exceeded: boolean;
  compressionRequested: boolean;
}

export interface MarkMap {
  originalIndices: number[];
  typeIndices: { system: number[]; user: number[]; assistant: number[]; tool: number[] };
  batchBoundaries: number[];
  boundaryToBatch: number[];
  currentBatch: number;
}

export interface ConversationSettings {
  conversation: string;
  dryRun: boolean;
  version?: number;
  counter: string;
  mediaTokens: number;
  heading: string;
  tools: Tool[];
  tokenLimit?: number;
  compression?: Required<Compression>;
  state?: State;
}

/** A missing field leaves the setting as it is; `null` removes it. */
export interface SettingsChanges {
  tools?: Tool[] | null;
  tokenLimit?: number | null;
  compression?: Compression | null;
}

/** Which versions keep their messages. The newest one always does. */
export interface Keep {
  keepVersions?: number;
  keepBatches?: number;
  keepSince?: number;
  versions?: number[];
}

export interface Pruned {
  conversation: string;
  dryRun: boolean;
  entries: number[];
  bytes: number;
  keptVersions: number;
  state?: State;
}

export interface ErasedEntry {
  index: number;
  /** The number of bytes that were overwritten. */
  bytes: number;
  /** Whether the message had been erased or pruned before. */
  wasGone: boolean;
  /** The SHA-256 of the message. */
  hash: string;
}

/** Content of a transcript that a conversation cannot express. */
export interface Remark {
  /** The line of the file, or the number of the message, from 1. 0 for the envelope of the messages. */
  line: number;
  field: string;
  message: string;
}

export interface Exported {
  conversation: string;
  format: string;
  messages: number;
  bytes: number;
  remarks: Remark[];
  /** The file that the transcript was written to, if it was. */
  file?: string;
  data?: any;
}

export interface ImportedConversation {
  conversation: string;
  id?: string;
  version: number;
  messages: number;
  /** The number of tools. The last message of the log is their description. Missing if there are none. */
  tools?: number;
  forkOf?: Record<string, any>;
}

export interface Imported {
  conversation: string;
  id: string;
  version: number;
  format: string;
  conversations: ImportedConversation[];
  remarks: Remark[];
  state?: State;
}
