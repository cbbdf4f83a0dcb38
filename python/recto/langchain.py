"""A LangChain middleware that bounds and repairs what the model reads.

``RectoMiddleware`` changes only the request of each model call, not the state of the agent. A
conversation records every message and every cut, so a cut can be read, explained and undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, get_args

from ._extras import missing

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
except ModuleNotFoundError as error:
    raise missing(error, "langchain") from None

from . import types as t
from ._fit import repair as repair_list
from ._growing import checked_option, checked_target
from ._langchain import from_recto
from ._langchain_thread import REMOVED, Thread, Threads, id_of, stored_message
from ._names import checked_prefix, conversation_name
from .errors import BudgetTooSmall, VersionConflict
from .store import Conversation, Store, opened

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage, BaseMessage

__all__ = ["RectoMiddleware", "Report"]

_MAX_ATTEMPTS = 100
"""Maximum attempts after version conflicts."""
_BY_HAND = ("UNDO", "ROLLBACK", "RESTORE")
"""Operations of users. The middleware itself restores messages only together with their mark."""
_CUT = {"recto": "langchain", "event": "cut"}
"""The note of a version that cut the view."""


@dataclass(frozen=True)
class Report:
    """What the middleware did for one model call."""

    thread_id: str
    version: int
    """The version of the conversation that the model reads."""
    messages: int
    tokens: int
    """Messages and tokens of the request, without repairs and the system prompt."""
    hidden: int
    """Messages that this call hid, because the view was over budget."""
    shared_prefix: int
    """Messages at the front that are the same as in the call before: what a prompt cache can use."""
    repairs: list[t.ListRepair]
    paused: bool
    """Whether the view is over budget and was not cut, because of :meth:`RectoMiddleware.pause`."""


class RectoMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps what the model reads within a token budget and valid for a provider.

    A view with more than ``budget`` tokens is cut down to ``target`` (default: 60 % of the budget):
    rare, deep cuts keep the prompt cache of the provider useful. ``provider`` names the rules that
    requests must follow. ``on_report`` receives a :class:`Report` for each model call.

    A cut that is undone by hand is not repeated: the thread is then paused until :meth:`resume`.
    """

    def __init__(
        self,
        store: Store | str,
        *,
        budget: int,
        target: int | None = None,
        provider: t.Provider | None = "openai-chat",
        start_on: t.Role | None = None,
        counter: str | None = None,
        prefix: str = "langchain/",
        on_report: Callable[[Report], None] | None = None,
    ) -> None:
        super().__init__()
        target = checked_target(budget, target, ("budget", "target"), counter)
        checked_option("provider", provider, get_args(t.Provider))
        checked_option("start_on", start_on, get_args(t.Role))
        self.prefix = checked_prefix(prefix)
        self.store = opened(store)
        self.budget = budget
        self.target = target
        self.provider: t.Provider | None = provider
        self.start_on: t.Role | None = start_on
        self.counter = counter
        self.on_report = on_report
        self._threads = Threads()

    def conversation(self, thread_id: str) -> Conversation:
        """The conversation of a thread: every message, and every version of what the model read."""
        return self.store.conversation(self._name(thread_id))

    def _name(self, thread_id: object) -> str:
        return conversation_name(self.prefix, str(thread_id))

    def pause(self, thread_id: str) -> None:
        """Stops cutting the view of a thread."""
        with self._threads.lock:
            self._thread(thread_id).is_paused = True

    def resume(self, thread_id: str) -> None:
        """Cuts the view of a thread again when it is over budget."""
        with self._threads.lock:
            self._thread(thread_id).is_paused = False

    # The hooks of LangChain. They may run several times for one call, and then give the same view.

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(self._shaped(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(await asyncio.to_thread(self._shaped, request))

    def _shaped(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        info = getattr(request.runtime, "execution_info", None)
        thread_id = getattr(info, "thread_id", None)
        thread_id = "default" if thread_id is None else str(thread_id)
        messages, report = self.view(thread_id, request.messages)
        if self.on_report is not None:
            self.on_report(report)
        return request.override(messages=cast("list[AnyMessage]", messages))

    def view(
        self, thread_id: str, messages: Sequence[BaseMessage]
    ) -> tuple[list[BaseMessage], Report]:
        """The messages that the model reads in the place of these: the caller's own objects, and
        messages that a repair or a summary made."""
        with self._threads.lock:
            thread = self._thread(thread_id)
            conversation = self.conversation(thread_id)
            self._record(conversation, thread, messages)
            hidden = self._cut(conversation, thread)
            shown = conversation.request({"show": True})
        by_index = {
            thread.indices.get(id_of(message, at)): message for at, message in enumerate(messages)
        }
        entries: list[t.Entry] = shown["messages"]
        view = [by_index.get(e["index"]) or from_recto(e["message"]) for e in entries]
        indices = [entry["index"] for entry in entries]
        shared = 0
        for old, new in zip(thread.last_sent, indices, strict=False):
            if old != new:
                break
            shared += 1
        thread.last_sent = indices
        repairs: list[t.ListRepair] = []
        if self.provider is not None and view:
            repaired = repair_list(view, self.provider, counter="approx")
            view, repairs = repaired.messages, repaired.repairs
        paused = thread.is_paused and shown["tokens"] > self.budget
        report = Report(
            thread_id,
            shown["version"],
            len(indices),
            shown["tokens"],
            hidden,
            shared,
            repairs,
            paused,
        )
        return view, report

    def _thread(self, thread_id: str) -> Thread:
        thread = self._threads.get(thread_id)
        if thread is None:
            settings: Any = {"counter": self.counter} if self.counter else True
            self.store.conversation(self._name(thread_id), create=settings)
            thread = self._threads.add(thread_id)
        return thread

    def _record(
        self, conversation: Conversation, thread: Thread, messages: Sequence[BaseMessage]
    ) -> None:
        """Adds new messages to the conversation, and hides those that left the state.

        Messages that return to the state, as after going back to an older checkpoint, are shown again.
        """
        present = {id_of(message, at): message for at, message in enumerate(messages)}
        for _ in range(_MAX_ATTEMPTS):
            self._see(conversation, thread)
            new: list[tuple[str, BaseMessage]] = []
            changed: list[tuple[str, BaseMessage]] = []
            for identity, message in present.items():
                if identity not in thread.messages:
                    new.append((identity, message))
                elif not thread.has(identity, message):
                    changed.append((identity, message))
            gone = [one for one in thread.indices if one not in present]
            returned = [one for one in thread.removed if one in present]
            operations: list[dict[str, Any]] = []
            visible: set[int] = set()
            if gone or changed or returned:
                visible = {entry["index"] for entry in conversation.entries()}
            gone = [one for one in gone if thread.indices[one] in visible]
            if gone:
                hide = {"indices": [thread.indices[one] for one in gone]}
                operations.append({"operation": "DELETE", **hide, "description": REMOVED})
                operations.append({"operation": "MARK", **hide, "mark": REMOVED})
            if returned:
                marked = {thread.indices[one] for one in returned}
                show = sorted(marked - visible)
                if show:
                    reason = "returned to the state"
                    restore = {"operation": "RESTORE", "indices": show, "description": reason}
                    operations.append(restore)
                unmark = {"operation": "UNMARK", "indices": sorted(marked), "mark": REMOVED}
                operations.append(unmark)
                visible.update(show)
            replaced = [
                (one, message) for one, message in changed if thread.indices[one] in visible
            ]
            for identity, message in replaced:
                data = stored_message(identity, message)
                index = thread.indices[identity]
                operations.append({"operation": "replace", "indices": [index], "data": data})
            if new:
                stored = [stored_message(identity, message) for identity, message in new]
                operations.append({"operation": "APPEND", "messages": stored})
            if not operations:
                thread.removed.difference_update(returned)
                break
            try:
                outcome = conversation.apply(operations, expected_version=thread.version)
            except VersionConflict:
                continue
            thread.removed.difference_update(returned)
            thread.removed.update(gone)
            added = [*replaced, *new]
            for (identity, _), index in zip(added, outcome["added"], strict=True):
                thread.indices[identity] = index
            thread.version = outcome["version"]
            break
        else:
            raise VersionConflict("version_conflict", "other writers keep changing the thread")
        thread.messages.update(present)

    def _see(self, conversation: Conversation, thread: Thread) -> t.VersionInfo:
        """The newest version. Reads what other writers have changed: they may have undone a cut."""
        newest = conversation.versions(limit=1)[0]
        if newest["version"] != thread.version:
            by_hand = self._is_over_by_hand(conversation, newest, thread.version)
            thread.is_paused = thread.is_paused or by_hand
            thread.read(conversation.query(scope="all"))
            thread.version = newest["version"]
        return newest

    def _is_over_by_hand(
        self, conversation: Conversation, newest: t.VersionInfo, known: int
    ) -> bool:
        """Whether a version after the known one made the view larger than the budget, and is not ours."""
        page = [newest]
        while page:
            for version in page:
                is_cut = version.get("note") == _CUT
                if is_cut or version["tokens"] <= self.budget or version["version"] <= known:
                    return False
                if version["operation"] in _BY_HAND:
                    return True
            page = conversation.versions(limit=20, before=page[-1]["version"])
        return False

    def _cut(self, conversation: Conversation, thread: Thread) -> int:
        """Hides old messages if the view is over budget. Returns their number."""
        target = self.target
        for _ in range(_MAX_ATTEMPTS):
            newest = self._see(conversation, thread)
            tokens = newest["tokens"]
            if tokens <= self.budget or thread.is_paused:
                return 0
            try:
                outcome = conversation.fit(
                    target,
                    start_on=self.start_on,
                    description=f"{tokens} tokens are over the budget of {self.budget}",
                    expected_version=newest["version"],
                    note=_CUT,
                )
            except BudgetTooSmall as error:
                # Not even the shortest run of newest messages fits in the target: keep only that run.
                target = error.needed or self.budget
                if target >= tokens:
                    return 0
                continue
            except VersionConflict:
                continue
            thread.version = outcome["version"]
            return len(outcome["hidden"])
        raise VersionConflict("version_conflict", "other writers keep changing the thread")
