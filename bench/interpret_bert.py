"""BERT-base's fused loop level in the interpreter: how long it takes, and how far it is off.

    python -m bench.interpret_bert [--layers 12] [--sequence 128]
"""

from __future__ import annotations

import argparse
import sys
import time

import torch


def main() -> int:
    """Trace, lower to fused loops, interpret, compare with eager."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--sequence", type=int, default=128)
    options = parser.parse_args()
    from transformers import BertConfig, BertModel

    import irc
    from irc.frontend.tracing import trace_function
    from irc.ir.passes import PassManager

    torch.manual_seed(0)
    model = BertModel(BertConfig(num_hidden_layers=options.layers), add_pooling_layer=False).eval()
    tokens = torch.randint(0, 30000, (4, options.sequence))

    with torch.no_grad():
        expected = model(tokens)[0]
        module = irc.trace(model, (tokens,))
        arguments = [*trace_function(model, (tokens,)).tensors, tokens]
    text = "functional,aten-to-graph,graph-to-layout,layout-to-loop,fuse-loops"
    start = time.perf_counter()
    PassManager.parse(text).run(module)
    lowered = time.perf_counter() - start
    start = time.perf_counter()
    got = irc.run(module, *arguments)
    seconds = time.perf_counter() - start
    error = float((got[0].detach() - expected).abs().max() / expected.abs().max())
    operations = sum(1 for _ in module.walk())
    print(f"{options.layers} layers, {operations} operations, lowered in {lowered:.1f} s")
    print(f"interpreted in {seconds:.1f} s (limit 60), largest relative error {error:.1e}")
    return 0 if seconds < 60 and error < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
