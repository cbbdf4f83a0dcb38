from typing import final

__all__ = ["NativeStore", "compute", "schema"]

@final
class NativeStore:
    @staticmethod
    def open(
        address: str,
        tenant: str | None = None,
        search: bool | None = None,
        max_message_bytes: int | None = None,
    ) -> NativeStore: ...
    def request(self, /, text: str) -> str: ...
    def close(self, /) -> None: ...
    @property
    def closed(self) -> bool: ...

def compute(text: str, /) -> str: ...
def schema() -> str: ...
