"""The frameworks of the adapters, which are optional."""

from __future__ import annotations


def missing(error: ModuleNotFoundError, extra: str) -> ModuleNotFoundError:
    """The error of an adapter whose framework is not installed. It names the extra to install."""
    install = f"pip install 'recto-context[{extra}]'"
    return ModuleNotFoundError(f"{error}; this adapter needs {extra}: {install}", name=error.name)
