"""Runs and builds a program that was written as text: python examples/row_norm.py"""

from pathlib import Path

import torch

import irc

PROGRAM = Path(__file__).with_name("row_norm.mlir")


def main():
    module = irc.parse_file(str(PROGRAM))
    irc.verify(module)
    x = torch.randn(6, 20)
    (interpreted,) = irc.run(module, x)

    irc.PassManager.parse("fuse-loops,loop-to-kernel,kernel-to-host").run(module)
    executable = irc.build(module)
    for rows in (6, 0, 1000):
        x = torch.randn(rows, 20)
        (norms,) = executable(x)
        torch.testing.assert_close(norms, x.norm(dim=1))
    print(f"kernels: {executable.metrics['kernels']}")
    print("the text, interpreted and compiled, agrees with torch")


if __name__ == "__main__":
    main()
