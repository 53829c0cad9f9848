"""The aten dialect: torch's operators as operations, made on demand from their schemas.

`aten.add.Tensor` is `aten::add.Tensor`; an operator of another library is
`aten.extern.<namespace>.<op>.<overload>`. Tensors and scalars that are data at run time are
operands; everything else stands in the dictionary `arguments` under the schema's names, where
`#aten.operand<k>` stands for operand k:

    %z = aten.add.Tensor %x, %y {arguments = {alpha = 2 : i64, other = #aten.operand<1>,
         self = #aten.operand<0>}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

Arguments that equal the schema's default are left out. Types carry eager's strides. Operations
may write their operands and alias them, exactly as in eager mode: nothing here is pure.
"""

from irc.dialects.aten.ops import (
    EXTERN,
    NONE,
    NUMBER_TYPES,
    NUMBERS,
    AtenOp,
    DeviceAttr,
    DtypeAttr,
    LayoutAttr,
    MemoryFormatAttr,
    NamedAttr,
    NoneAttr,
    OperandAttr,
    SchemaOp,
    arguments_of,
    bind_arguments,
    callee_schema,
    class_of,
    declarations,
    decode,
    encode,
    known_schema,
    make_aten,
    op_class,
    op_name,
    operand_indices,
    overload_name,
    overload_of,
    qualified_name,
    schema_of,
    to_torch,
    verify_arguments,
    verify_called,
)

__all__ = [
    "AtenOp",
    "DeviceAttr",
    "DtypeAttr",
    "EXTERN",
    "LayoutAttr",
    "MemoryFormatAttr",
    "NONE",
    "NUMBERS",
    "NUMBER_TYPES",
    "NamedAttr",
    "NoneAttr",
    "OperandAttr",
    "SchemaOp",
    "arguments_of",
    "bind_arguments",
    "callee_schema",
    "class_of",
    "declarations",
    "decode",
    "encode",
    "known_schema",
    "make_aten",
    "op_class",
    "op_name",
    "operand_indices",
    "overload_name",
    "overload_of",
    "qualified_name",
    "schema_of",
    "to_torch",
    "verify_arguments",
    "verify_called",
]
