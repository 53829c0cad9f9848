"""Hooks: what a file beside the definition of a class says of it.

    @verifies(kernel.ForOp)
    def for_loop(op: kernel.ForOp) -> None:
        ...

A definition names no verifier, text or fold that stands in another file: that file names the
definition, so imports go one way. What it says becomes an attribute of the class, and looking it
up costs what a method costs. A dialect's `__init__` imports its files, so whoever has an operation
has all that is said of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

# What `irc.ir.verifier` keeps for each class of operations, made when one is first verified.
verified: dict[type, Any] = {}

# What loads the file that gives operations and attributes their text; the package fills it in.
loaders: dict[str, Callable[[], Any]] = {}


class HasText:
    """Base of what has a text. The first one that is asked for loads the file that writes it, and
    that says `__str__` of the classes; so this stands above the files that it needs."""

    __slots__ = ()

    def __str__(self) -> str:
        loaders["text"]()
        return str(self)


def says(*classes: type, method: str) -> Callable[[F], F]:
    """Make the function below the method `method` of `classes`. Raises TypeError where one of
    them has that method: two files that say a thing of one class are a mistake."""

    def install(function: F) -> F:
        for cls in classes:
            known = cls.__dict__.get(method)
            if known is not None and not _is_again(known, function):
                raise TypeError(f"{cls.__name__} has {method} already")
            setattr(cls, method, function)
        verified.clear()
        return function

    return install


def _is_again(known: Any, function: Any) -> bool:
    """Whether both are one function of one file, read a second time."""
    place = getattr(known, "__module__", None), getattr(known, "__qualname__", None)
    return place == (function.__module__, function.__qualname__)


def verifies(*classes: type) -> Callable[[F], F]:
    """`check(op)`: what the declarations of the operation classes can't say (`Op.verify_op`)."""
    return says(*classes, method="verify_op")


def verifies_references(*classes: type) -> Callable[[F], F]:
    """`check(op)`: what is asked of another operation by its name (`Op.verify_references`)."""
    return says(*classes, method="verify_references")


def verifies_facts(*classes: type) -> Callable[[F], F]:
    """`check(op, stated)`: what holds by the facts around the operation (`Op.verify_facts`)."""
    return says(*classes, method="verify_facts")


def prints(*classes: type) -> Callable[[F], F]:
    """`write(op, printer)`: writes what follows the operation's name."""
    return says(*classes, method="print_custom")


def parses(*classes: type) -> Callable[[F], F]:
    """`read(cls, parser)`: the operation of class `cls` whose name was just read."""

    def install(function: F) -> F:
        read: Any = classmethod(function)
        says(*classes, method="parse_custom")(read)
        return function

    return install


def prints_parameters(*classes: type) -> Callable[[F], F]:
    """`write(attribute, writer)`: writes what stands between the brackets of an attribute."""
    return says(*classes, method="print_parameters")


def parses_parameters(*classes: type) -> Callable[[F], F]:
    """`read(cls, parser)`: the attribute of class `cls`, from between the brackets."""

    def install(function: F) -> F:
        read: Any = classmethod(function)
        says(*classes, method="parse_parameters")(read)
        return function

    return install


def folds(*classes: type) -> Callable[[F], F]:
    """`fold(op, constants)`: as `Op.fold`."""
    return says(*classes, method="fold")
