"""Texts of programs on every level, and copies of them that are wrong in a few places.

`text_of(seed)` is a program of the tests (a part of an IR file, or a small function lowered to
some level) after one to three edits: words left out, doubled, swapped, numbers, names and
attributes changed, lines removed, doubled or moved.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional as F

import irc
from irc import pipeline
from irc.ir.passes import PassManager

TESTS = Path(__file__).resolve().parent.parent
LARGEST = 6_000
ATTEMPTS = 12
WORD = re.compile(r'"[^"\n]*"|[%#!@^][\w.$]+|\d+\.\d+(?:e[+-]?\d+)?|\d+|\w[\w.]*|->|[^\w\s]')
DIRECTIVE = re.compile(r"^// (?!-----).*\n?", re.MULTILINE)
SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
NUMBERS = ("0", "1", "-1", "2", "3", "7", "64", "1000000007", "4294967296", "9223372036854775807",
           "99999999999999999999", "0.5", "nan", "0x7FC00000")  # fmt: skip
STAGES = (
    pipeline.FUNCTIONAL, "aten-to-graph", "graph-to-layout", "layout-to-loop", "fuse-loops",
    "loop-to-kernel", "kernel-to-host",
)  # fmt: skip


def _attend(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) / 2.0, -1).sum(0)


def _update(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x[1:].add_(y[1:] * 2)
    return torch.cat([x, y.flip(0)]).cumsum(1)


def _pick(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return x[index].masked_fill(x[index] < 0, 0.5).mean(-1)


def _images(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.max_pool2d(F.relu(F.conv2d(x, w, padding=1)), 2).bfloat16().argmax(-1)


def _choose(x: torch.Tensor) -> torch.Tensor:
    found = torch.where(x > 0, x.long() // 3, 5)
    return F.layer_norm(x, [x.shape[-1]]) + torch.scatter(x, 1, (found % x.shape[1]).abs(), 1.0)


def programs() -> list[tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...], bool]]:
    """Small functions with arguments, and whether their sizes are symbols."""
    generator = torch.Generator().manual_seed(0)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    return [
        (_attend, (randn(3, 5, 4), randn(3, 5, 4)), False),
        (_update, (randn(4, 6), randn(4, 6)), True),
        (_pick, (randn(7, 9), torch.tensor([0, 3, 5])), True),
        (_images, (randn(1, 3, 8, 8), randn(4, 3, 3, 3)), False),
        (_choose, (randn(4, 6),), True),
    ]


@functools.cache
def written(folder: Path) -> tuple[str, ...]:
    """The parts of the IR files in a folder."""
    texts = []
    for path in sorted(folder.rglob("*.mlir")):
        for part in SPLIT.split(path.read_text(encoding="utf-8")):
            plain = DIRECTIVE.sub("", part).strip()
            if plain and len(plain) <= LARGEST:
                texts.append(plain + "\n")
    return tuple(texts)


@functools.cache
def corpus() -> tuple[str, ...]:
    """The programs' texts: parts of the tests' IR files, and functions on every level."""
    texts = list(written(TESTS))
    for function, args, dynamic in programs():
        module = irc.trace(function, args, dynamic=dynamic)
        texts.append(irc.print_op(module))
        for stage in STAGES:
            PassManager.parse(stage).run(module)
            texts.append(irc.print_op(module))
    return tuple(texts)


@functools.cache
def vocabulary(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The words of the texts that are neither names of values nor numbers."""
    words = {w for text in texts for w in WORD.findall(text)}
    return tuple(sorted(w for w in words if w[0] not in "%0123456789"))


# -- edits


class Chance(random.Random):
    """Random choices, with the texts whose words an edit may put elsewhere."""

    texts: tuple[str, ...] = ()


def text_of(seed: int, texts: tuple[str, ...] | None = None) -> str:
    """The program number `seed`, wrong in one to three places; mostly, at least: one of `texts`,
    else of the corpus.

    Three of four are edited until the parser reads them, so that what is behind it sees them.
    """
    chance = Chance(seed)
    chance.texts = corpus() if texts is None else texts
    text = chance.choice(chance.texts)
    is_read = chance.randrange(4) > 0
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        for _ in range(ATTEMPTS):
            edited = chance.choice(EDITS)(text, chance)
            if not is_read or (edited != text and _can_be_read(edited)):
                text = edited
                break
    return text


def _can_be_read(text: str) -> bool:
    try:
        irc.parse(text)
    except Exception:
        return False
    return True


def _delete_word(text: str, chance: Chance) -> str:
    first, _ = _two_words(text, chance)
    return text[: first[0]] + text[first[1] :]


def _double_word(text: str, chance: Chance) -> str:
    (start, end), _ = _two_words(text, chance)
    return f"{text[:end]} {text[start:end]}{text[end:]}"


def _swap_words(text: str, chance: Chance) -> str:
    first, second = sorted(_two_words(text, chance))
    if first == second:
        return text
    middle = text[first[1] : second[0]]
    swapped = text[slice(*second)] + middle + text[slice(*first)]
    return text[: first[0]] + swapped + text[second[1] :]


def _swap_alike(text: str, chance: Chance) -> str:
    """Another word of the program in the place of one that begins in the same way."""
    first, _ = _two_words(text, chance)
    word = text[slice(*first)]
    alike = [w for w in WORD.findall(text) if _kind(w) == _kind(word)]
    return text[: first[0]] + chance.choice(alike) + text[first[1] :]


def _foreign_word(text: str, chance: Chance) -> str:
    """A word of any program in the place of one that begins in the same way."""
    first, _ = _two_words(text, chance)
    kind = _kind(text[slice(*first)])
    words = vocabulary(chance.texts)
    alike = [w for w in words if _kind(w) == kind]
    return text[: first[0]] + chance.choice(alike or words) + text[first[1] :]


def _change_number(text: str, chance: Chance) -> str:
    numbers = [m.span() for m in re.finditer(r"(?<![\w%#.@^])-?\d+(?:\.\d+)?", text)]
    if not numbers:
        return text
    start, end = chance.choice(numbers)
    near = str(int(float(text[start:end])) + chance.choice((-1, 1)))
    return text[:start] + chance.choice((near, *NUMBERS)) + text[end:]


def _drop_attribute(text: str, chance: Chance) -> str:
    entries = [m.span() for m in re.finditer(r"[\w.]+ = [^,{}\[\]]+(?:, )?", text)]
    if not entries:
        return text
    start, end = chance.choice(entries)
    return text[:start] + text[end:]


def _remove_line(text: str, chance: Chance) -> str:
    lines = text.splitlines(keepends=True)
    del lines[chance.randrange(len(lines))]
    return "".join(lines)


def _double_line(text: str, chance: Chance) -> str:
    lines = text.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    lines.insert(at, lines[at])
    return "".join(lines)


def _move_line(text: str, chance: Chance) -> str:
    lines = text.splitlines(keepends=True)
    line = lines.pop(chance.randrange(len(lines)))
    lines.insert(chance.randrange(len(lines) + 1), line)
    return "".join(lines)


def _two_words(text: str, chance: Chance) -> tuple[tuple[int, int], tuple[int, int]]:
    """The places of two words, near to each other."""
    words = [m.span() for m in WORD.finditer(text)]
    if not words:
        return (0, 0), (0, 0)
    at = chance.randrange(len(words))
    return words[at], words[min(at + chance.randrange(1, 6), len(words) - 1)]


def _kind(word: str) -> str:
    """What a word is, by how it begins: a value, a number, an operation, a name, a mark."""
    if word[0].isdigit():
        return "0"
    if word[0].isalpha() or word[0] == "_":
        return "." if "." in word else "a"
    return word[0]


EDITS: tuple[Callable[[str, Chance], str], ...] = (
    _delete_word, _double_word, _swap_words, _swap_alike, _swap_alike, _foreign_word,
    _foreign_word, _change_number, _change_number, _drop_attribute, _remove_line, _double_line,
    _move_line,
)  # fmt: skip
