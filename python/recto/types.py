"""Types of requests and responses. The names of fields are those of ``docs/exec.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Union

JsonObject = dict[str, Any]
Message = Mapping[str, Any]
"""A message: ``{"role": …, "content": …}``."""
Operation = Mapping[str, Any]
"""An operation: ``{"operation": "TRUNCATE", "keepLast": 20}``."""
Operations = Union[Operation, Sequence[Operation]]
Role = Literal["system", "user", "assistant", "tool"]
Scope = Literal["visible", "all"]
Provider = Literal["anthropic", "openai-chat", "openai-responses", "gemini", "bedrock-converse"]
CounterName = Literal["o200k_base", "cl100k_base", "approx"]


class Compression(TypedDict, total=False):
    """When and how the view is made shorter."""

    enabled: bool
    threshold: int
    targetTokens: int
    strategy: str


class Settings(TypedDict, total=False):
    """Settings of a new conversation. All have defaults."""

    counter: str
    mediaTokens: int
    tools: Sequence[Mapping[str, Any]]
    heading: str
    tokenLimit: int
    compression: Compression


class WriteOptions(TypedDict, total=False):
    """Options of methods that change a conversation."""

    expected_version: int | None
    """The request fails with ``VersionConflict`` if this is not the newest version."""
    idempotency_key: str | None
    """A request that is repeated with the same key is not applied again."""
    note: object
    """JSON that is stored with the version, at most 16 KiB."""
    dry_run: bool
    """Returns the outcome without making the change."""
    return_state: bool
    """Adds ``state`` to the outcome."""


class Stats(TypedDict):
    totalMessages: int
    currentBatchMessages: int
    totalBatches: int
    currentBatchIndex: int
    tokens: int


class SharedPrefix(TypedDict):
    messages: int
    tokens: int


class Warning(TypedDict):
    code: str
    indices: list[int]
    message: str


class _Entry(TypedDict):
    index: int
    tokens: int
    timestamp: int
    message: dict[str, Any]


class Entry(_Entry, total=False):
    """A log entry. ``position`` is missing if it is hidden."""

    position: int
    marks: list[str]


class BatchSnapshot(TypedDict):
    batchIndex: int
    timestamp: int
    description: str
    messageCount: int
    messages: list[dict[str, Any]]


class State(TypedDict):
    messages: list[dict[str, Any]]
    batchSnapshots: list[BatchSnapshot]
    currentBatchIndex: int
    totalMessageCount: int


class _Outcome(TypedDict):
    version: int
    affectedBatchIndex: int
    changed: bool
    hidden: list[int]
    shown: list[int]
    added: list[int]
    stats: Stats
    sharedPrefix: SharedPrefix
    warnings: list[Warning]


class Outcome(_Outcome, total=False):
    """The result of a change."""

    toolsChanged: bool
    dryRun: bool
    state: State


class Appended(Outcome, total=False):
    """The result of adding messages. ``remarks`` is present if they had another format."""

    remarks: list[dict[str, Any]]


class ForkedFrom(TypedDict):
    id: str
    version: int


class _ConversationInfo(TypedDict):
    name: str
    id: str
    version: int
    messages: int
    created: int
    updated: int
    link: str


class ConversationInfo(_ConversationInfo, total=False):
    """A conversation in a list."""

    forkedFrom: ForkedFrom


class MarkedEntries(TypedDict):
    mark: str
    indices: list[int]


class _Info(ConversationInfo):
    stats: Stats
    counter: str
    tools: list[str]
    marks: list[MarkedEntries]
    warnings: list[Warning]


class Info(_Info, total=False):
    """The statistics, marks, tools and warnings of a conversation."""

    tokenLimit: int


class _VersionInfo(TypedDict):
    version: int
    operation: str
    description: str
    timestamp: int
    messages: int
    tokens: int
    batch: int
    batchOpenedBy: int
    log: int


class VersionInfo(_VersionInfo, total=False):
    """A version in the history."""

    parent: int
    target: int
    saidAt: int
    note: Any


class Blame(TypedDict):
    version: int
    operation: str
    description: str
    timestamp: int
    effect: str


class MarkBlame(TypedDict):
    """A version that added a mark to a log entry, or removed it."""

    version: int
    operation: str
    description: str
    timestamp: int
    mark: str
    marked: bool


class Difference(TypedDict):
    kept: SharedPrefix
    hidden: DifferencePart
    shown: DifferencePart
    moved: DifferencePart


class DifferencePart(TypedDict):
    indices: list[int]
    tokens: int


class Finding(TypedDict):
    rule: str
    severity: str
    index: int
    message: str
    repair: str
    entry: int


class RenderWarning(TypedDict):
    code: str
    indices: list[int]
    message: str


class Rendered(TypedDict):
    """A provider request with its repairs."""

    request: dict[str, Any]
    repairs: list[Finding]
    warnings: list[RenderWarning]


class SearchHit(Entry):
    conversation: str


class Verification(TypedDict):
    name: str
    sound: bool
    versions: int
    entries: int
    erased: int
    link: str
    faults: list[str]


class StoreVerification(TypedDict):
    sound: bool
    conversations: list[Verification]
    store: list[str]


class TokenShare(TypedDict):
    name: str
    messages: int
    tokens: int


class TokenShares(TypedDict):
    conversation: str
    version: int
    counter: str
    messages: int
    tokens: int
    byRole: list[TokenShare]
    byTool: list[TokenShare]
    largest: list[Entry]


class CheckedTokens(TypedDict):
    conversation: str
    version: int
    tokens: int
    limit: int | None
    threshold: int | None
    targetTokens: int | None
    exceeded: bool
    compressionRequested: bool


class MarkMap(TypedDict):
    originalIndices: list[int]
    typeIndices: dict[str, list[int]]
    batchBoundaries: list[int]
    boundaryToBatch: list[int]
    currentBatch: int


class _ConversationSettings(TypedDict):
    conversation: str
    dryRun: bool
    counter: str
    mediaTokens: int
    heading: str
    tools: list[dict[str, Any]]


class ConversationSettings(_ConversationSettings, total=False):
    version: int
    tokenLimit: int
    compression: Compression
    state: State


class _Pruned(TypedDict):
    conversation: str
    dryRun: bool
    entries: list[int]
    bytes: int
    keptVersions: int


class Pruned(_Pruned, total=False):
    state: State


class ErasedEntry(TypedDict):
    index: int
    bytes: int
    wasGone: bool
    hash: str


class _Exported(TypedDict):
    conversation: str
    format: str
    messages: int
    bytes: int
    remarks: list[dict[str, Any]]


class Exported(_Exported, total=False):
    data: str


class _Imported(TypedDict):
    conversation: str
    id: str
    version: int
    format: str
    conversations: list[dict[str, Any]]
    remarks: list[dict[str, Any]]


class Imported(_Imported, total=False):
    state: State


class ListRepair(TypedDict):
    """A repair of a list of messages. ``index`` is a position in the given list."""

    rule: str
    severity: str
    index: int
    message: str
    repair: str
