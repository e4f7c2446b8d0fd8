"""A piece of work with a begin and an end: a `with` block, an `async with` block, a decorator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, overload

Held = TypeVar("Held")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Block(ABC, Generic[Held]):
    """Named; begun when entered, ended when left.

    As a decorator it makes a new block for each call of the function, plain or async; the name
    may then format arguments: `@run.experiment("level {level}")`. What a block swallows (an
    aborted experiment) makes the function return None.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def again(self, name: str) -> Block[Held]:
        """Return a block like this one, not begun."""

    @abstractmethod
    def __enter__(self) -> Held:
        """Begin."""

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """End; true swallows the exception."""

    async def __aenter__(self) -> Held:
        """Begin; a block that may have to wait does it without holding up the event loop."""
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """End; true swallows the exception."""
        return self.__exit__(kind, error, trace)

    @overload
    def __call__(
        self, function: Callable[Parameters, Coroutine[Any, Any, Result]]
    ) -> Callable[Parameters, Coroutine[Any, Any, Result | None]]: ...

    @overload
    def __call__(
        self, function: Callable[Parameters, Result]
    ) -> Callable[Parameters, Result | None]: ...

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function; raises TypeError for a generator, which ends after its call."""
        import inspect  # not loaded by an agent that decorates nothing

        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__qualname__} is a generator: use a `with` block inside it")
        signature = inspect.signature(function) if "{" in self.name else None

        def begun(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Block[Held]:
            if signature is None:
                return self.again(self.name)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return self.again(self.name.format(**bound.arguments))

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def later(*args: Any, **kwargs: Any) -> Any:
                async with begun(args, kwargs):
                    return await function(*args, **kwargs)

            return later

        @wraps(function)
        def at_once(*args: Any, **kwargs: Any) -> Any:
            with begun(args, kwargs):
                return function(*args, **kwargs)

        return at_once
