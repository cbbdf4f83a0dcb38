"""Writes ``recto/aio.py``: the classes of ``recto/store.py`` with methods that run in threads.

``python make_async.py`` writes the file, ``python make_async.py --check`` compares it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
HEADER = '''"""Stores and conversations for asyncio: each method runs in a thread (``asyncio.to_thread``).

Cancelling a method does not cancel its request: a change that has started is made. ``make_async.py``
writes this file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, List  # `list` is a method of AsyncStore

from . import types as t
from .store import Conversation, Store

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

__all__ = ["AsyncConversation", "AsyncStore"]
'''
STORE = '''

class AsyncStore:
    """A :class:`~recto.Store` for asyncio."""

    def __init__(self, store: Store) -> None:
        self._sync = store

    @classmethod
    async def open(
        cls,
        address: str,
        *,
        tenant: str | None = None,
        search: bool | None = None,
        max_message_bytes: int | None = None,
    ) -> Self:
        """Opens the store at an address: ``memory:``, ``sqlite:PATH`` or ``postgres://…``."""
        store = await asyncio.to_thread(
            Store.open,
            address,
            tenant=tenant,
            search=search,
            max_message_bytes=max_message_bytes,
        )
        return cls(store)

    @classmethod
    async def shared(cls, address: str) -> AsyncStore:
        """The open store at an address, the same for all callers in this process.

        The first call opens it.
        """
        return AsyncStore(await asyncio.to_thread(Store.shared, address))

    @property
    def sync(self) -> Store:
        """The store with blocking methods."""
        return self._sync

    @property
    def address(self) -> str:
        """The address that the store was opened with. It may contain a password."""
        return self._sync.address

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._sync.closed

    async def conversations(self) -> AsyncIterator[t.ConversationInfo]:
        """All conversations in the order of their names."""
        pages = self._sync.conversations()
        while (info := await asyncio.to_thread(next, pages, None)) is not None:
            yield info

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
'''
CONVERSATION = '''

class AsyncConversation:
    """A :class:`~recto.Conversation` for asyncio."""

    def __init__(self, conversation: Conversation) -> None:
        self._sync = conversation

    @property
    def sync(self) -> Conversation:
        """The conversation with blocking methods."""
        return self._sync

    @property
    def name(self) -> str:
        """The name, or the id, that this object was made with."""
        return self._sync.name
'''
LEFT_OUT = {"open", "shared", "conversations"}


def methods(tree: ast.Module, name: str) -> str:
    (found,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    written: list[str] = []
    for node in found.body:
        is_method = isinstance(node, ast.FunctionDef) and not node.decorator_list
        if is_method and not node.name.startswith("_") and node.name not in LEFT_OUT:
            written.append(method(node))
    return "".join(written)


def method(node: ast.FunctionDef) -> str:
    arguments = node.args
    passed = [argument.arg for argument in arguments.args[1:]]
    passed += [f"{argument.arg}={argument.arg}" for argument in arguments.kwonlyargs]
    if arguments.kwarg:
        passed.append(f"**{arguments.kwarg.arg}")
    returned = ast.unparse(node.returns) if node.returns else "None"
    call = f"asyncio.to_thread({', '.join([f'self._sync.{node.name}', *passed])})"
    doc = (ast.get_docstring(node) or "").replace("\n", "\n        ")
    body = f"return await {call}"
    if returned == "Conversation":
        body = f"return AsyncConversation(await {call})"
        returned = "AsyncConversation"
    elif returned == "None":
        body = f"await {call}"
    signature = ast.unparse(arguments)
    end = "\n        " if "\n" in doc else ""
    return (
        f"\n    async def {node.name}({signature}) -> {returned}:\n"
        f'        """{doc}{end}"""\n        {body}\n'
    )


def main() -> int:
    tree = ast.parse((HERE / "recto/store.py").read_text())
    text = HEADER + STORE + methods(tree, "Store") + CONVERSATION + methods(tree, "Conversation")
    formatter = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "recto/aio.py", "-"]
    done = subprocess.run(
        formatter, cwd=HERE, input=text, capture_output=True, text=True, check=True
    )
    text = done.stdout
    target = HERE / "recto/aio.py"
    if "--check" in sys.argv:
        if not target.exists() or target.read_text() != text:
            print("recto/aio.py is not up to date; run: python make_async.py")
            return 1
        return 0
    target.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
