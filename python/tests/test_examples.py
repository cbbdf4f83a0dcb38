"""The scripts of ``examples/python``, and the outputs in the documentation."""

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


def test_links_of_the_pages_exist():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
