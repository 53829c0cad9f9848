"""A program's text on every level: python examples/levels.py [FOLDER]

Traces `softmax(x * w)` and takes it down the default pipeline for a CPU, stage by stage. With a
folder, each level is written there as a file that irc-opt and `irc run` read; without, the texts
are printed.
"""

import sys
from pathlib import Path

import torch

import irc
from irc import pipeline


def scaled_softmax(x, w):
    return torch.softmax(x * w, -1)


def levels():
    """Pairs of a stage's name and the text after it, the traced program first."""
    module = irc.trace(scaled_softmax, (torch.randn(64, 16), torch.randn(16)))
    yield "aten", irc.print_op(module)
    for stage, passes in pipeline.stages().items():
        # One target, so that every machine prints the same kernel.
        context = irc.PassContext(target="avx512")
        irc.PassManager.parse(passes, verify="each").run(module, context)
        yield stage, irc.print_op(module)


def main():
    for number, (stage, text) in enumerate(levels()):
        if len(sys.argv) > 1:
            folder = Path(sys.argv[1])
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.{stage}.mlir").write_text(text)
        else:
            print(f"// after {stage}\n{text}")


if __name__ == "__main__":
    main()
