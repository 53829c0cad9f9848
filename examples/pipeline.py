"""A pipeline of one's own over the Python API: python examples/pipeline.py

Traces a function with symbolic sizes, runs irc's passes and one written here, looks at the program
in between, and builds an executable from what comes out.
"""

import torch

import irc
from irc.dialects import graph
from irc.ir.passes import PassContext


# relu(relu(x)) -> relu(x), with relu as maximum(x, 0)
@irc.pattern(graph.Maximum, name="example.idempotent_maximum")
def idempotent_maximum(op, rw):
    inner = op.lhs.owner
    if not isinstance(inner, graph.Maximum) or inner.rhs is not op.rhs:
        return rw.no_match("the operand is no maximum with the same value")
    rw.replace(op, op.lhs)


@irc.register_pass
class IdempotentMaximum(irc.Pass):
    """Drops a maximum that repeats the one before it."""

    name = "idempotent-maximum"
    summary = "max(max(x, y), y) as max(x, y)"

    def run(self, op, context):
        before = sum(isinstance(inner, graph.Maximum) for inner in op.walk())
        irc.apply_patterns_greedily(op, [idempotent_maximum])
        after = sum(isinstance(inner, graph.Maximum) for inner in op.walk())
        context.count("dropped", before - after)


def model(x):
    return torch.relu(torch.relu(x)) + 1


def main():
    module = irc.trace(model, (torch.randn(4, 6),), dynamic=True)
    to_graph = "functional,aten-to-graph,idempotent-maximum"
    context = irc.PassManager.parse(to_graph, verify="each").run(module, PassContext())
    print(module)
    print(f"statistics: {dict(context.statistics)}")

    x = torch.randn(5, 9)
    (interpreted,) = irc.run(module, x)
    rest = "graph-to-layout,layout-to-loop,fuse-loops,loop-to-kernel,kernel-to-host"
    irc.PassManager.parse(rest).run(module)
    (compiled,) = irc.build(module)(x)
    equal = all(torch.equal(found, model(x)) for found in (interpreted, compiled))
    print(f"equal to eager: {equal}")


if __name__ == "__main__":
    main()
