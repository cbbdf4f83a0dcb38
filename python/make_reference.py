"""Writes ``docs/python-api.md``: the public names of the package with their signatures and docstrings.

``python make_reference.py`` writes the file, ``python make_reference.py --check`` compares it.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs/python-api.md"
HEADER = """# Python API reference

`python/make_reference.py` writes this page from the docstrings. [python.md](python.md) is the guide.

Methods of `Store` and `Conversation` are requests of [exec.md](exec.md), and return their responses as
dicts. The types `t.…` are `TypedDict`s of `recto.types`; their fields are those of the responses.
"""
# A heading, the file that defines the names, and the names in the order of the page.
SECTIONS = [
    ("recto: stores", "store", ["Store", "Conversation"]),
    ("recto: asyncio", "aio", ["AsyncStore", "AsyncConversation"]),
    ("recto: lists of messages", "_fit", ["fit", "repair", "count_tokens", "Fitted"]),
    ("recto: errors", "errors", None),
    ("recto.langgraph", "_langgraph_saver", ["RectoSaver"]),
    ("", "_langgraph_checkpointer", ["RectoCheckpointer"]),
    ("recto.langchain", "langchain", ["RectoMiddleware", "Report"]),
    ("recto.openai_agents", "openai_agents", ["RectoSession", "fit_input"]),
    ("recto.pydantic_ai", "pydantic_ai", ["RectoContext", "fit_messages", "message_of"]),
    ("", "_pydantic_store", ["RectoConversationStore"]),
]
SAME_METHODS = {"AsyncStore": "Store", "AsyncConversation": "Conversation"}
"""Classes with the methods of another one. Only their other members are listed."""
NOT_CONSTRUCTED = {"Store", "Conversation", "AsyncStore", "AsyncConversation"}
"""Classes whose instances are made by methods."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> int:
    text = page()
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text() != text:
            print("docs/python-api.md is not up to date; run: python make_reference.py")
            return 1
        return 0
    PAGE.write_text(text)
    return 0


def page() -> str:
    written = [HEADER]
    for heading, module, names in SECTIONS:
        if heading:
            written.append(f"\n## {heading}\n")
        tree = ast.parse((HERE / f"recto/{module}.py").read_text())
        for name in names or exported(tree):
            written.append(entry(tree, name))
    return "".join(written)


def exported(tree: ast.Module) -> list[str]:
    """The names of ``__all__``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise SystemExit("a module without __all__")


def entry(tree: ast.Module, name: str) -> str:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return f"\n### {name}\n{code(signature(node))}{prose(node)}"
        if isinstance(node, ast.ClassDef) and node.name == name:
            return class_entry(node)
    raise SystemExit(f"{name} is not defined")


def class_entry(node: ast.ClassDef) -> str:
    bases = [ast.unparse(base) for base in node.bases]
    declared = f"class {node.name}({', '.join(bases)})" if bases else f"class {node.name}"
    written = [f"\n### {node.name}\n", code(declared), prose(node)]
    skipped: set[str] = set()
    if node.name in SAME_METHODS:
        same = SAME_METHODS[node.name]
        skipped = public_methods(ast.parse((HERE / "recto/store.py").read_text()), same)
        written.append(f"\nThe methods of `{same}` are coroutines here.\n")
    names = {member.name for member in node.body if isinstance(member, FUNCTIONS)}
    asynchronous = {f"a{name}" for name in names} & names
    for at, member in enumerate(node.body):
        after = node.body[at + 1] if at + 1 < len(node.body) else None
        if isinstance(member, ast.AnnAssign) and is_public(ast.unparse(member.target)):
            gap = "" if written[-1].startswith(("- ", "\n- ")) else "\n"
            written.append(f"{gap}- `{ast.unparse(member)}`{remark(after)}\n")
        elif isinstance(member, FUNCTIONS):
            if member.name == "__init__" and node.name not in NOT_CONSTRUCTED:
                written[1] = code(f"{node.name}{arguments(member)}")
            elif is_public(member.name) and member.name not in skipped | asynchronous:
                written.append(method(node, member, f"a{member.name}" in asynchronous))
    return "".join(written)


def method(
    owner: ast.ClassDef, node: ast.FunctionDef | ast.AsyncFunctionDef, has_async: bool
) -> str:
    """A method. One that a framework defines has no docstring, and is left out."""
    if not ast.get_docstring(node):
        return ""
    decorators = {ast.unparse(one) for one in node.decorator_list}
    kind = "property " if "property" in decorators else ""
    kind = "classmethod " if "classmethod" in decorators else kind
    title = f"{owner.name}.{node.name}"
    if kind == "property ":
        returned = ast.unparse(node.returns) if node.returns else "None"
        return f"\n#### {title}\n{code(f'{kind}{node.name}: {returned}')}{prose(node)}"
    also = f"\n`a{node.name}` is the same as a coroutine.\n" if has_async else ""
    return f"\n#### {title}\n{code(kind + signature(node))}{prose(node)}{also}"


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returned = ast.unparse(node.returns) if node.returns else "None"
    return f"{word} {node.name}{arguments(node)} -> {returned}"


def arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    text = re.sub(r"^(self|cls)(, )?", "", ast.unparse(node.args))
    words = [re.sub(r"^(\w+: [^=]+)=", r"\1 = ", word) for word in split(text)]
    if len(text) < 80:
        return f"({', '.join(words)})"
    return "(\n    " + ",\n    ".join(words) + ",\n)"


def split(text: str) -> list[str]:
    """The arguments, split at the commas that are in no bracket."""
    words, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            words.append(text[start:at].strip())
            start = at + 1
    return [*words, text[start:].strip()]


def public_methods(tree: ast.Module, name: str) -> set[str]:
    (found,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    return {node.name for node in found.body if isinstance(node, ast.FunctionDef)}


def code(text: str) -> str:
    return f"\n```python\n{text}\n```\n"


def prose(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    doc = ast.get_docstring(node)
    if not doc:
        return ""
    text, *examples = re.split(r"\n(?=>>> )", doc, maxsplit=1)
    written = f"\n{markdown(text).strip()}\n"
    if examples:
        written += f"\n```pycon\n{examples[0].strip()}\n```\n"
    return written


def remark(node: ast.stmt | None) -> str:
    """The string below a field."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    text = " ".join(str(node.value.value).split()) if is_text else ""  # type: ignore[union-attr]
    return f": {markdown(text)}" if text else ""


def markdown(text: str) -> str:
    text = re.sub(r":\w+:`~?(?:recto\.)?([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


def is_public(name: str) -> bool:
    return not name.startswith("_")


def is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(one) for one in node.decorator_list)


if __name__ == "__main__":
    sys.exit(main())
