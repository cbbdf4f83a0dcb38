"""The scripts of ``examples/python``, and the code and the outputs in the documentation."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples/python").glob("*.py"))
PAGES = [*ROOT.glob("docs/python*.md"), ROOT / "python/README.md", ROOT / "README.md"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_prints_what_its_page_shows(path):
    run = [sys.executable, "-W", "ignore", str(path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    pattern = rf"\$ python examples/python/{path.name}\n(.*?)```"
    shown = [text for page in PAGES for text in re.findall(pattern, page.read_text(), re.DOTALL)]
    assert shown, f"no page shows the output of {path.name}"
    assert all(text == done.stdout for text in shown), done.stdout


LANGCHAIN = "from scripted import *; model, tools, task = ScriptedModel(calls=1), [read], 'go'"
SDK = """
from agents import Agent, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message
set_tracing_disabled(True)
agent = Agent(name="a", model=ScriptedModel([[assistant_message(it)] for it in ("1", "2")]))
"""
# For each page: what its code takes for granted, a module that it needs, and what holds after it.
CODE = {
    "README.md": ("", "recto", "assert len(conversation.messages()) == 2 and fitted == messages"),
    "python/README.md": ("", "recto", "assert request['messages']"),
    "docs/python-langchain.md": (LANGCHAIN, "langchain", "assert context.conversation('t1')"),
    "docs/python-langgraph.md": (LANGCHAIN, "langgraph.checkpoint.sqlite", "assert saver"),
    "docs/python-openai-agents.md": (SDK, "agents", "assert len(await branch.get_items()) == 2"),
    "docs/python-pydantic-ai.md": (
        "from pydantic_ai.models.test import TestModel; model = TestModel()",
        "pydantic_ai",
        "assert store.conversation('user-42').messages()",
    ),
}
RUN = """
import ast, asyncio, sys
code = compile(sys.stdin.read(), "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
running = eval(code, {"__name__": "page"})
if running is not None:
    asyncio.run(running)
"""


@pytest.mark.parametrize("page", CODE)
def test_the_code_of_a_page_runs(page, tmp_path):
    before, module, after = CODE[page]
    pytest.importorskip(module)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    assert blocks, f"{page} has no code"
    paths = os.pathsep.join([str(ROOT / "python"), str(ROOT / "python/tests")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN],
        input="\n".join([before, *blocks, after]),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_first_code_of_the_guide_runs(capsys):
    guide = (ROOT / "docs/python.md").read_text()
    names = {}
    exec(guide.split("```python\n")[1].split("```")[0], names)
    assert capsys.readouterr().out == "[{'role': 'assistant', 'content': 'Since when exactly?'}]\n"
    assert len(names["conversation"].messages()) == 2
    assert len(names["fork"].messages()) == 1


ADAPTERS = {
    "langgraph": "langgraph",
    "langchain": "langchain",
    "openai_agents": "openai-agents",
    "pydantic_ai": "pydantic-ai",
}


@pytest.mark.parametrize("module", ADAPTERS)
def test_an_adapter_without_its_framework_names_the_extra_to_install(module):
    # `-S` leaves out the installed packages.
    command = [sys.executable, "-S", "-c", f"import recto, recto.{module}"]
    place = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, env=place, capture_output=True, text=True, check=False)
    assert f"pip install 'recto-context[{ADAPTERS[module]}]'" in done.stderr


def test_links_of_the_pages_exist():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
