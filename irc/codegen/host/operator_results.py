"""What a host program's call of an operator gives: new results, and arguments that it wrote to."""

from __future__ import annotations

from irc.program import host_program as P


def list_length(step: P.CallOperator) -> int | None:
    """How many of an operator's results are the items of its one list."""
    from irc.boundary import aten_paths

    returns = aten_paths.find_operator(step.callee)._schema.returns
    if len(returns) == 1 and str(returns[0].type) == "List[Tensor]":
        return len(step.results)
    return None


def split_results(step: P.CallOperator) -> tuple[list[P.Result], list[tuple[P.Result, int]]]:
    """Results that are new, and those that are an argument written to (with its register)."""
    from irc.boundary import aten_paths

    schema = aten_paths.find_operator(step.callee)._schema
    if len(schema.returns) != len(step.results):
        return list(step.results), []
    arguments = dict(step.arguments)
    written = {
        name: a.name
        for a in schema.arguments
        if a.alias_info is not None and a.alias_info.is_write
        for name in a.alias_info.before_set
    }
    fresh, aliased = [], []
    for returned, result in zip(schema.returns, step.results, strict=True):
        alias = returned.alias_info
        names = set() if alias is None or not alias.is_write else alias.before_set & set(written)
        if names:
            source = arguments[written[names.pop()]]
            aliased.append((result, source.index))
        else:
            fresh.append(result)
    return fresh, aliased


__all__ = ["list_length", "split_results"]
