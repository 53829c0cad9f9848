"""The text of the host dialect's function and return; the others have the default form."""

from __future__ import annotations

from irc.dialects.host import ops
from irc.ir.hooks import parses, prints
from irc.ir.text.functions import (
    parse_function,
    parse_typed_values,
    print_function,
    print_typed_values,
)

prints(ops.HostFuncOp)(print_function)
parses(ops.HostFuncOp)(parse_function)
prints(ops.HostReturnOp)(print_typed_values)
parses(ops.HostReturnOp)(parse_typed_values)
