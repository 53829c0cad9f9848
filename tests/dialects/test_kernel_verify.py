"""Each rule of the kernel dialect's verifier, by a kernel that breaks it."""

from __future__ import annotations

import pytest

import irc
from irc.ir.diagnostics import InvalidIR
from tests.dialects.verifying import check

PTR = "!kernel.ptr<f32>"
CPU = "%begin: index, %end: index"


def kernel(body: str = "", arguments: str = "", attributes: str = 'target = "cpu"') -> str:
    return f"kernel.func @k({arguments}) attributes {{{attributes}}} {{ {body} kernel.return }}"


def cpu(body: str, pointers: str = f"%x: {PTR}, %y: {PTR}", more: str = "") -> str:
    """A cpu kernel that writes its last pointer; %c is a constant 0, %v of 8 lanes."""
    last = pointers.count("ptr") - 1
    head = """%c = arith.constant 0 : index
      %v = arith.constant dense<1.0> : vector<8xf32>
      %t = arith.constant true
      %m = arith.constant dense<true> : vector<8xi1>
      %o = arith.constant dense<0> : vector<8xindex> """
    attributes = f'target = "cpu", outputs = array<i64: {last}>{more}'
    return kernel(head + body, f"{pointers}, {CPU}", attributes)


def gpu(body: str, more: str = "") -> str:
    attributes = f'target = "gpu", outputs = array<i64: 1>{more}'
    return kernel(body, f"%x: {PTR}, %y: {PTR}", attributes)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (kernel("", CPU), None),
        (kernel("", CPU, 'target = "tpu"'), "target 'tpu' is not one of cpu, gpu"),
        (kernel("", f"{CPU}, %x: {PTR}"), "argument 2 is a pointer after an index"),
        (kernel("", f"%x: f32, {CPU}"), "argument 0 is f32, not a kernel.ptr or index"),
        (kernel("", "%n: index"), "1 index arguments, not 2: one for each of its 0 symbols, begin"),
        (kernel("", f"%n: index, {CPU}", 'target = "cpu", symbols = ["s0"]'), None),
        (kernel("", CPU, 'target = "cpu", symbols = ["s0"]'), "2 index arguments, not 3"),
        (kernel("", f"%n: index, {CPU}", 'target = "cpu", symbols = [1 : i64]'), "not all names"),
        (kernel("", f"%n: index, %m: index, {CPU}", 'target = "cpu", symbols = ["s0", "s0"]'),
         "two index arguments bind one symbol: s0, s0"),
        (kernel("", "%n: index", 'target = "gpu", symbols = ["s0"]'), None),
        (kernel("", CPU, 'target = "gpu"'), "2 index arguments, not 0"),
        (kernel("", f"%x: !kernel.ptr<ui8>, {CPU}"), "no values of type !kernel.ptr<ui8>"),
        (kernel("", "%x: !kernel.ptr<ui8>", 'target = "gpu"'), None),
        (kernel("", f"%x: !kernel.ptr<complex<f32>>, {CPU}"), "no values of type"),
        (kernel("", f"%x: !kernel.ptr<vector<4xf32>>, {CPU}"), "points at no element of memory"),
        ('"kernel.func"() ({ ^a(%b: index, %e: index): kernel.return }) {sym_name = "k", '
         'target = "cpu", function_type = (index) -> ()} : () -> ()', "differ from the kernel's"),
        ('"kernel.func"() ({ ^a(%b: index, %e: index): kernel.return }) {sym_name = "k", '
         'target = "cpu", function_type = (index, index) -> (f32)} : () -> ()', "has no results"),
    ],
)  # fmt: skip
def test_arguments(text, error):
    check(text, error)


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ("outputs = array<i64: 1, 2>, initialized = array<i64: 0, 1>", None),
        ("outputs = array<i64: 0>", r"outputs \[0\] are not the last of 3 pointer arguments"),
        ("outputs = array<i64: 2, 1>", r"outputs \[2, 1\] are not the last"),
        ("outputs = array<i64: 3>", r"outputs \[3\] are not the last"),
        ("outputs = array<i64: 1, 2>, inplace = array<i64: 0>", "no list of pairs"),
        ("inplace = array<i64: 0, 1>", "no list of pairs"),
        ("outputs = array<i64: 2>, inplace = array<i64: 0, 1>", "argument 1, which is no output"),
        ("outputs = array<i64: 1, 2>, inplace = array<i64: 1, 2>", "argument 1, which is no input"),
        ("outputs = array<i64: 1, 2>, inplace = array<i64: 0, 2>", "elements differ in bytes"),
        ("outputs = array<i64: 1, 2>, inplace = array<i64: 0, 1, 0, 1>", "names a pair twice"),
        ("outputs = array<i64: 1, 2>, private = array<i64: 2>, inplace = array<i64: 0, 1>", None),
        ("outputs = array<i64: 1, 2>, private = array<i64: 0>", r"private \[0\] are not outputs"),
        ("private = array<i64: 2>", r"private \[2\] are not outputs of a cpu kernel"),
        ("num_warps = 4 : i64", "num_warps is of gpu kernels"),
        ("index_bits = 32 : i64", "index_bits is of gpu kernels"),
    ],
)
def test_facts_about_a_cpu_kernel(attributes, error):
    arguments = f"%x: {PTR}, %y: {PTR}, %z: !kernel.ptr<f64>, {CPU}"
    check(kernel("", arguments, f'target = "cpu", {attributes}'), error)


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ("num_warps = 4 : i64, num_stages = 3 : i64, index_bits = 32 : i64", None),
        ("num_warps = 3 : i64", "num_warps is 3, not a power of two"),
        ("num_stages = 0 : i64", "num_stages is 0, not at least 1"),
        ("index_bits = 16 : i64", "index_bits is 16, not 32 or 64"),
        ("outputs = array<i64: 2>, initialized = array<i64: 0, 2>", None),
        ("outputs = array<i64: 2>, initialized = array<i64: 0, 2, 1, 2>", "two initial arrays"),
    ],
)
def test_facts_about_a_gpu_kernel(attributes, error):
    arguments = f"%x: {PTR}, %y: {PTR}, %z: {PTR}"
    check(kernel("", arguments, f'target = "gpu", {attributes}'), error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (cpu("%p = kernel.program_id : index"), "is of gpu kernels, this is one for a cpu"),
        (gpu("%p = kernel.program_id : index"), None),
        (gpu("%p = kernel.scratch {count = 4 : i64} : !kernel.ptr<f32>"), "is of cpu kernels"),
        (gpu("%c = kernel.program_id : index kernel.prefetch %x, %c : (!kernel.ptr<f32>, index)"),
         "is of cpu kernels"),
        (cpu("kernel.prefetch %x, %c : (!kernel.ptr<f32>, index)"), None),
        (cpu("%w = kernel.expand %v {dims = array<i64: 0>} : (vector<8xf32>) -> vector<8x4xf32>"),
         "is of gpu kernels"),
        (cpu("%w = graph.iota {dim = 0 : i64} : tensor<4xi64>"), "'graph.iota' has no place in a"),
        (cpu("%w = kernel.iota : vector<2x2x2xindex>"), "is no vector of a cpu kernel"),
        (cpu("%w = kernel.iota : vector<512xindex>"), "at most 256 elements"),
        (gpu("%w = kernel.iota : vector<512xindex>"), None),
        (gpu("%w = kernel.iota : vector<48xindex>"), "its sizes are powers of two"),
        (gpu("%w = kernel.iota : vector<2048x1024xindex>"), "2097152 elements, a tile"),
        (cpu("%w = kernel.iota : vector<8xui8>"), "a cpu kernel has no values of type"),
        (cpu("%w = kernel.iota : vector<8xi24>"), "a cpu kernel has no values of type"),
        (gpu("%w = kernel.iota : vector<8xui8>"), "a gpu kernel has no values of type"),
    ],
)  # fmt: skip
def test_what_a_target_has_code_for(text, error):
    check(text, error)


def loads(text: str) -> str:
    return cpu(f"%w = kernel.{text}")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (loads("load %x[%c] (where %m else %v) : vector<8xf32>"), None),
        (loads("load %x[%c] (where %t) : vector<8xf32>"), None),
        (loads("load %x[%c] : f64"), "moves f64 at a !kernel.ptr<f32>: memory of it holds f32"),
        (loads("load %x[%c] : vector<4x4xf32>"), "not a vector of consecutive elements"),
        (loads("load %x[%c] (where %m) : vector<4xf32>"),
         r"the mask is vector<8xi1>, not i1, or vector<4xi1>"),
        (loads("load %x[%c] (where %m) : f32"), "the mask is vector<8xi1>, not i1"),
        (loads("load %x[%c] (where %v) : vector<8xf32>"), "the mask is vector<8xf32>, not i1"),
        (loads("load %x[%c] (where %m else %m) : vector<8xf32>"), "the 'else' is vector<8xi1>"),
        ('kernel.func @k(%x: !kernel.ptr<f32>, %c: index, %e: index) attributes {target = "cpu"} '
         '{ %f = arith.constant 1.0 : f32 %w = "kernel.load"(%x, %c, %f) '
         "{operandSegmentSizes = array<i64: 1, 1, 0, 1>} : (!kernel.ptr<f32>, index, f32) -> f32 "
         "kernel.return }", "has an 'else' and no mask"),
        (loads("gather %x[%o] (where %m else %v) : vector<8xf32>"), None),
        (loads("gather %x[%o] : vector<4xf32>"), "one for each lane of vector<4xf32> wanted"),
        (loads("gather %x[%v] : vector<8xf32>"), "the offsets are vector<8xf32>, not of index"),
        (cpu("kernel.store %v, %y[%c] (where %m) : vector<8xf32>"), None),
        (cpu("kernel.store %c, %y[%c] : index"), "moves index at a !kernel.ptr<f32>"),
        (cpu("kernel.store %v, %x[%c] : vector<8xf32>"),
         r"writes argument 0, which is not among the outputs \[1\]"),
        (cpu('kernel.scatter %v, %y[%o] {combiner = "sum"} : vector<8xf32>'), None),
        (cpu('kernel.scatter %v, %y[%o] {combiner = "xor"} : vector<8xf32>'),
         "combiner 'xor' is not one of set, sum"),
        (cpu("kernel.scatter %v, %x[%o] : vector<8xf32>"), "writes argument 0"),
        (cpu("kernel.scatter %v, %y[%c] : vector<8xf32>"), "one for each lane"),
    ],
)  # fmt: skip
def test_memory(text, error):
    check(text, error)


def test_a_bool_in_memory_is_one_in_a_register():
    pointers = "%x: !kernel.ptr<i1>, %y: !kernel.ptr<i1>"
    move = "%b = kernel.load %x[%c] : {0} kernel.store %b, %y[%c] : {0}"
    check(cpu(move.format("vector<8xi1>"), pointers), None)
    check(cpu(move.format("vector<8xi8>"), pointers), "memory of it holds i1")


def test_pointers_stay_what_they_are():
    body = """%q = kernel.for %i = %c to %c step %c iter_args(%p = %y) -> (!kernel.ptr<f32>) {
        kernel.store %v, %p[%i] : vector<8xf32>
        kernel.yield %p : !kernel.ptr<f32>
      }"""
    check(cpu(body.replace("step %c", "step %end")), "its pointer is carried by a loop")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("%p = kernel.scratch {count = 1024 : i64} : !kernel.ptr<f32>", None),
        ("%p = kernel.scratch {count = 0 : i64} : !kernel.ptr<f32>", "count is 0"),
        ("%p = kernel.scratch {count = 65537 : i64} : !kernel.ptr<f32>", "262148 bytes of kernel"),
        ("kernel.if %t { %p = kernel.scratch {count = 4 : i64} : !kernel.ptr<f32> kernel.yield } "
         "else { kernel.yield }", "in a loop or branch"),
    ],
)  # fmt: skip
def test_scratch(body, error):
    check(cpu(body), error)


LOOP = "%r = kernel.for %i = %c to %end step %s iter_args(%a = %v) -> (vector<8xf32>) "


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (LOOP + "{ kernel.yield %a : vector<8xf32> }", None),
        (LOOP + "{ kernel.yield %c : index }", r"yields \(index\), the results are \(vector<8xf32"),
        (LOOP + "{ kernel.yield }", r"yields \(\), the results are"),
        (LOOP.replace("%s", "%c") + "{ kernel.yield %a : vector<8xf32> }", "the step is 0"),
        (LOOP + "attributes {unroll = 0 : i64} { kernel.yield %a : vector<8xf32> }", "unroll is 0"),
        ('"kernel.for"(%c, %end, %s) ({ ^a(%i: f32): kernel.yield }) '
         ": (index, index, index) -> ()", r"takes \(f32\), not index"),
        ('%r = "kernel.for"(%c, %end, %s) ({ ^a(%i: index): kernel.yield %i : index }) '
         ": (index, index, index) -> (index)", r"carries \(\) and gives \(index\)"),
        ('"kernel.for"(%c, %end, %s) ({ ^a(%i: index): kernel.return }) '
         ": (index, index, index) -> ()", "kernel.return.* stands in kernel.for"),
        ("%r = kernel.if %t -> (f32) { kernel.yield %f : f32 } else { kernel.yield %f : f32 }",
         None),
        ("%r = kernel.if %t -> (f32) { kernel.yield %f : f32 } else { kernel.yield }",
         r"yields \(\), the results are \(f32\)"),
        ("kernel.if %s8 { kernel.yield } else { kernel.yield }", "the condition is i8, not i1"),
    ],
)  # fmt: skip
def test_loops_and_branches(body, error):
    head = """%s = arith.constant 8 : index
      %s8 = arith.constant 1 : i8
      %f = arith.constant 1.0 : f32 """
    check(cpu(head + body), error)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("%w = kernel.splat %c : (index) -> vector<8xindex>", None),
        ("%w = kernel.splat %c : (index) -> vector<8xf32>", "makes vector<8xf32> of index"),
        ("%w = kernel.iota {dim = 1 : i64} : vector<8xindex>", "counts along dimension 1"),
        ("%w = kernel.iota : vector<8xf32>", "counts in f32, not in index"),
        ("%w = kernel.transpose %q : (vector<4x8xf32>) -> vector<8x4xf32>", None),
        ("%w = kernel.transpose %q : (vector<4x8xf32>) -> vector<4x8xf32>", "not vector<8x4xf32>"),
        ("%w = kernel.transpose %v : (vector<8xf32>) -> vector<8xf32>", "not of a tile with two"),
        ('%w = kernel.reduce %v {combiner = "sum"} : (vector<8xf32>) -> f32', None),
        ('%w = kernel.reduce %q {combiner = "sum"} : (vector<4x8xf32>) -> vector<8xf32>', None),
        ('%w = kernel.reduce %q {combiner = "sum"} : (vector<4x8xf32>) -> vector<4xf32>',
         "gives vector<4xf32>, not vector<8xf32>"),
        ('%w = kernel.reduce %v {combiner = "mean"} : (vector<8xf32>) -> f32',
         "combiner 'mean' is not one of sum, prod"),
        ('%w = kernel.reduce %v {combiner = "any"} : (vector<8xf32>) -> f32',
         "any combines integers, not f32"),
        ('%w = kernel.reduce %v {combiner = "sum", dim = 1 : i64} : (vector<8xf32>) -> f32',
         "along dimension 1 of vector<8xf32>"),
        ('%w = kernel.reduce %c {combiner = "sum"} : (index) -> index', "which has none"),
        ('%w = kernel.reduce %v {combiner = "argmax"} : (vector<8xf32>) -> f32',
         "combines a value and a position; 1 operands and 1 results"),
        ('%w, %p = kernel.reduce %v, %o {combiner = "argmax"} '
         ": (vector<8xf32>, vector<8xindex>) -> (f32, index)", None),
        ('%w, %p = kernel.reduce %v, %v {combiner = "argmax"} '
         ": (vector<8xf32>, vector<8xf32>) -> (f32, f32)", "the positions are vector<8xf32>"),
        ('%w = kernel.scan %v {combiner = "sum"} : (vector<8xf32>) -> vector<8xf32>', None),
        ('%w = kernel.scan %v {combiner = "sum"} : (vector<8xf32>) -> f32', "gives f32, not vec"),
        ('%w = kernel.scan %v {combiner = "moments"} : (vector<8xf32>) -> vector<8xf32>',
         "combiner 'moments' is not one of"),
        ("%w = kernel.extract %v, %c : (vector<8xf32>, index) -> f32", None),
        ("%w = kernel.extract %q, %c : (vector<4x8xf32>, index) -> vector<8xf32>", None),
        ("%w = kernel.extract %v, %c : (vector<8xf32>, index) -> f64", "takes f64 out of"),
        ("%w = kernel.insert %c, %v, %c : (index, vector<8xf32>, index) -> vector<8xf32>",
         "puts index into vector<8xf32>, not f32"),
        ("%w = kernel.insert %f, %v, %c : (f32, vector<8xf32>, index) -> vector<4xf32>",
         "gives vector<4xf32>, not vector<8xf32>"),
    ],
)  # fmt: skip
def test_vectors(body, error):
    head = """%q = arith.constant dense<1.0> : vector<4x8xf32>
      %f = arith.constant 1.0 : f32 """
    check(cpu(head + body), error)


EXPAND = "%v = kernel.iota : vector<8xindex> %w = kernel.expand %v "


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("{dims = array<i64: 1>} : (vector<8xindex>) -> vector<4x8xindex>", None),
        ("{dims = array<i64: 0>} : (vector<8xindex>) -> vector<4x8xindex>", "size 8 of .* can't"),
        ("{dims = array<i64: 2>} : (vector<8xindex>) -> vector<4x8xindex>", "size 8 of .* can't"),
        ("{dims = array<i64: 0, 1>} : (vector<8xindex>) -> vector<4x8xindex>", "don't name one"),
        ("{dims = array<i64: 1>} : (vector<8xindex>) -> vector<4x8xi64>", "another element"),
    ],
)
def test_expanded_tiles(body, error):
    check(gpu(EXPAND + body), error)


def test_the_same_mistake_is_found_each_time():
    """What passed for some types says nothing about others, however often it is asked."""
    bad = loads("load %x[%c] (where %m) : vector<4xf32>")
    for text, error in [(loads("load %x[%c] (where %m) : vector<8xf32>"), None), (bad, "the mask")]:
        check(text, error)
        check(text, error)


def vector(sizes: str) -> str:
    return f"%w = arith.constant dense<1.0> : vector<{sizes}xf32>"


@pytest.mark.parametrize(
    ("target", "sizes", "fits"),
    [("cpu", "1", True), ("cpu", "256", True), ("cpu", "257", False), ("cpu", "16x16", True),
     ("cpu", "16x17", False), ("cpu", "2x2x2", False), ("gpu", "1", True), ("gpu", "2", True),
     ("gpu", "3", False), ("gpu", "1x64", True), ("gpu", "4x6", False), ("gpu", "1024x1024", True),
     ("gpu", "2048x1024", False), ("gpu", "4x0", False), ("cpu", "4x0", False)],
)  # fmt: skip
def test_shapes_of_values(target, sizes, fits):
    text = cpu(vector(sizes)) if target == "cpu" else gpu(vector(sizes))
    check(text, None if fits else "is no vector of a cpu kernel|tile of a gpu kernel")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (loads("gather %x[%o] : vector<8xf64>"), "moves f64 at a !kernel.ptr<f32>"),
        (loads("gather %x[%o] (where %m4) : vector<8xf32>"), "the mask is vector<4xi1>"),
        (loads("gather %x[%o] (where %t else %c) : vector<8xf32>"), "the 'else' is index"),
        (loads("gather %x[%o] (where %t else %f) : vector<8xf32>"), None),
        (cpu("kernel.scatter %o, %y[%o] : vector<8xindex>"), "moves index at a"),
        (cpu("kernel.scatter %v, %y[%o] (where %v) : vector<8xf32>"), "the mask is vector<8xf32>"),
        (cpu("kernel.store %v, %y[%c] (where %c) : vector<8xf32>"), "the mask is index, not i1"),
        (loads("load %x[%c] (where %t else %f) : vector<8xf32>"), None),
        (loads("load %x[%c] (where %t else %t) : vector<8xf32>"), "the 'else' is i1, not f32"),
        (loads("load %x[%c] (where %t else %v) : f32"), "the 'else' is vector<8xf32>, not f32"),
    ],
)  # fmt: skip
def test_what_is_moved(text, error):
    head = "%m4 = arith.constant dense<true> : vector<4xi1> %f = arith.constant 1.0 : f32 %v ="
    check(text.replace("%v =", head, 1), error)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("%p = kernel.if %t -> (!kernel.ptr<f32>) { kernel.yield %y : !kernel.ptr<f32> } else "
         "{ kernel.yield %y : !kernel.ptr<f32> } kernel.store %v, %p[%c] : vector<8xf32>",
         "its pointer is neither an argument of the kernel nor a kernel.scratch"),
        ("%p = kernel.scratch {count = 8 : i64} : !kernel.ptr<f32> "
         "kernel.store %v, %p[%c] : vector<8xf32>", None),
        ("%p = kernel.scratch {count = 1 : i64} : !kernel.ptr<f32>", None),
        ("%p = kernel.scratch {count = 65536 : i64} : !kernel.ptr<f32>", None),
        ("%p = kernel.scratch {count = 32768 : i64} : !kernel.ptr<f32> "
         "%q = kernel.scratch {count = 32769 : i64} : !kernel.ptr<f32>", "262148 bytes"),
        ("kernel.for %i = %c to %end step %end { %p = kernel.scratch {count = 4 : i64} : "
         "!kernel.ptr<f32> kernel.yield }", "in a loop or branch"),
    ],
)  # fmt: skip
def test_pointers_and_scratch(body, error):
    check(cpu(body), error)


ANY_OUTPUT = "%w = kernel.load %x[%c] : f32 kernel.store %w, %x[%c] : f32"


def test_a_kernel_that_names_no_outputs_may_write_each():
    check(cpu(ANY_OUTPUT).replace(", outputs = array<i64: 1>", ""), None)
    check(cpu(ANY_OUTPUT), "writes argument 0, which is not among the outputs")


@pytest.mark.parametrize(
    ("target", "kind", "fits"),
    [("cpu", "i1", True), ("cpu", "i8", True), ("cpu", "i64", True), ("cpu", "i4", False),
     ("cpu", "i128", False), ("cpu", "f16", True), ("cpu", "f8E5M2", False), ("cpu", "ui8", False),
     ("cpu", "index", True), ("gpu", "i4", False), ("gpu", "ui8", True), ("gpu", "f8E5M2", True),
     ("gpu", "ui64", True), ("gpu", "i128", False), ("gpu", "index", True),
     ("gpu", "complex<f32>", False)],
)  # fmt: skip
def test_elements_of_memory(target, kind, fits):
    ends = f", {CPU}" if target == "cpu" else ""
    text = kernel("", f"%x: !kernel.ptr<{kind}>{ends}", f'target = "{target}"')
    check(text, None if fits else f"a {target} kernel has no values of type !kernel.ptr<{kind}>")


@pytest.mark.parametrize(
    ("warps", "fits"), [(1, True), (2, True), (32, True), (64, False), (0, False), (-1, False)]
)
def test_numbers_of_warps(warps, fits):
    text = kernel("", "", f'target = "gpu", num_warps = {warps} : i64')
    check(text, None if fits else f"num_warps is {warps}, not a power of two up to 32")


@pytest.mark.parametrize(
    ("settings", "error"),
    [("num_stages = 1 : i64", None), ("num_stages = -1 : i64", "num_stages is -1"),
     ("index_bits = 64 : i64", None), ("index_bits = 33 : i64", "not 32 or 64")],
)  # fmt: skip
def test_stages_and_bits(settings, error):
    check(kernel("", "", f'target = "gpu", {settings}'), error)
    check(kernel("", CPU, f'target = "cpu", {settings}'), "is of gpu kernels")


@pytest.mark.parametrize(
    ("pairs", "error"),
    [
        ("inplace = array<i64: 0, 2, 1, 2>", None),
        ("inplace = array<i64: 0, 2, 0, 3>", None),
        ("inplace = array<i64: -1, 2>", "pairs argument -1, which is no input"),
        ("inplace = array<i64: 2, 3>", "pairs argument 2, which is no input"),
        ("inplace = array<i64: 0, 4>", "pairs argument 4, which is no output"),
        ("inplace = array<i64: 0, 2, 1>", "is no list of pairs"),
        ("initialized = array<i64: 0, 2, 0, 3>", None),
        ("initialized = array<i64: 0, 2, 1, 2>", "two initial arrays"),
        ("initialized = array<i64: 0, 1>", "pairs argument 1, which is no output"),
    ],
)
def test_pairs_of_inputs_and_outputs(pairs, error):
    arguments = ", ".join(f"%{name}: {PTR}" for name in "xyzw")
    check(kernel("", arguments, f'target = "gpu", outputs = array<i64: 2, 3>, {pairs}'), error)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ('%w, %p = kernel.reduce %v, %o {combiner = "sum"} : (vector<8xf32>, vector<8xindex>) -> '
         "(f32, index)", "sum combines one vector; 2 operands and 2 results given"),
        ('%w = kernel.reduce %v, %o {combiner = "argmin"} : (vector<8xf32>, vector<8xindex>) -> '
         "f32", "argmin combines a value and a position; 2 operands and 1 results given"),
        ('%w, %p = kernel.reduce %v {combiner = "argmin"} : (vector<8xf32>) -> (f32, index)',
         "1 operands and 2 results given"),
        ('%w, %p = kernel.reduce %v, %o4 {combiner = "argmin"} : (vector<8xf32>, vector<4xindex>) '
         "-> (f32, index)", "the positions are vector<4xindex>"),
        ('%w, %p = kernel.scan %v, %o {combiner = "argmax"} : (vector<8xf32>, vector<8xindex>) -> '
         "(vector<8xf32>, vector<8xindex>)", None),
        ('%w, %p = kernel.scan %v, %o {combiner = "argmax"} : (vector<8xf32>, vector<8xindex>) -> '
         "(vector<8xf32>, vector<8xi64>)", "gives vector<8xi64>, not vector<8xindex>"),
        ('%w = kernel.reduce %q {combiner = "sum", dim = 1 : i64} : (vector<4x8xf32>) -> '
         "vector<4xf32>", None),
        ('%w = kernel.reduce %q {combiner = "sum", dim = -1 : i64} : (vector<4x8xf32>) -> '
         "vector<4xf32>", "along dimension -1"),
        ('%w = kernel.reduce %q {combiner = "sum", dim = 2 : i64} : (vector<4x8xf32>) -> '
         "vector<4xf32>", "along dimension 2"),
        ('%w = kernel.reduce %m {combiner = "all"} : (vector<8xi1>) -> i1', None),
        ('%k = arith.constant dense<1> : vector<4x8xi32> '
         '%w = kernel.scan %k {combiner = "sort", dim = 1 : i64} : (vector<4x8xi32>) -> '
         'vector<4x8xi32>', None),
        ('%k = arith.constant dense<1> : vector<4x8xi32> '
         '%w = kernel.scan %k {combiner = "sort", dim = 0 : i64} : (vector<4x8xi32>) -> '
         'vector<4x8xi32>', "sorts along dimension 0"),
        ('%w = kernel.scan %v {combiner = "xor"} : (vector<8xf32>) -> vector<8xf32>',
         "xor combines integers, not f32"),
        ("%w = kernel.iota {dim = -1 : i64} : vector<8xindex>", "counts along dimension -1"),
        ("%w = kernel.iota {dim = 1 : i64} : vector<4x8xindex>", None),
        ("%w = kernel.iota : vector<8xi1>", "counts in i1, not in index"),
        ("%w = kernel.iota : vector<8xi32>", None),
        ("%w = kernel.insert %v, %q, %c : (vector<8xf32>, vector<4x8xf32>, index) -> "
         "vector<4x8xf32>", None),
        ("%w = kernel.insert %f, %q, %c : (f32, vector<4x8xf32>, index) -> vector<4x8xf32>",
         "puts f32 into vector<4x8xf32>, not vector<8xf32>"),
    ],
)  # fmt: skip
def test_combined_and_counted(body, error):
    head = """%q = arith.constant dense<1.0> : vector<4x8xf32>
      %o4 = arith.constant dense<1> : vector<4xindex>
      %f = arith.constant 1.0 : f32 """
    check(cpu(head + body), error)


@pytest.mark.parametrize(
    ("dims", "source", "made", "error"),
    [
        ("0, 1", "1x8", "4x8", None),
        ("1, 0", "1x8", "4x8", "don't name one"),
        ("1, 1", "8x8", "4x8", "don't name one"),
        ("0", "1", "4x8", None),
        ("0", "4", "4x8", None),
        ("1", "1", "4x8", None),
        ("1", "4", "4x8", "size 4 of"),
        ("-1", "8", "4x8", "can't become dimension -1"),
    ],
)
def test_sizes_of_expanded_tiles(dims, source, made, error):
    check(gpu(f"%v = kernel.iota : vector<{source}xindex> %w = kernel.expand %v {{dims = "
              f"array<i64: {dims}>}} : (vector<{source}xindex>) -> vector<{made}xindex>"),
          error)  # fmt: skip


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ('kernel.for %i = %c to %end step %s attributes {unroll = 1 : i64} { kernel.yield }', None),
        ('kernel.for %i = %c to %end step %one { kernel.yield }', None),
        ('kernel.for %i = %c to %end step %minus { kernel.yield }', "the step is -1, not positive"),
        ('kernel.for %i = %c to %end step %end { kernel.yield }', None),
        ('"kernel.for"(%c, %end, %s) ({ }) : (index, index, index) -> ()', "a region without a"),
        ('"kernel.for"(%c, %end, %s) ({ ^a(%i: index): kernel.yield ^b: kernel.yield }) '
         ": (index, index, index) -> ()", "a body is one block, not 2"),
        ('"kernel.for"(%c, %end, %s) ({ ^a(%i: index, %j: index): kernel.yield }) '
         ": (index, index, index) -> ()", r"takes \(index, index\), not index"),
        ('"kernel.for"(%c, %end, %s) ({ ^a(%i: index): "t.end"() : () -> () }) '
         ": (index, index, index) -> ()", "a body ends in kernel.yield"),
        ('"kernel.if"(%t) ({ ^a(%i: index): kernel.yield }, { kernel.yield }) : (i1) -> ()',
         "a branch takes no arguments, this one 1"),
        ('"kernel.if"(%t) ({ kernel.yield }, { ^a(%i: index): kernel.yield }) : (i1) -> ()',
         "a branch takes no arguments, this one 1"),
        ('"kernel.if"(%t) ({ kernel.yield }, { kernel.yield ^b: kernel.yield }) : (i1) -> ()',
         "a body is one block, not 2"),
        ('"t.any"() : () -> ()', "'t.any' has no place in a kernel"),
    ],
)  # fmt: skip
def test_bodies(body, error):
    head = """%s = arith.constant 8 : index
      %one = arith.constant 1 : index
      %minus = arith.constant -1 : index """
    module = irc.parse(cpu(head + body), allow_unregistered=True)
    if error is None:
        irc.verify(module)
        return
    with pytest.raises(InvalidIR, match=error):
        irc.verify(module)


def test_a_kernel_has_one_block():
    text = ('"kernel.func"() ({ ^a(%b: index, %e: index): kernel.return ^c: kernel.return }) '
            '{sym_name = "k", target = "cpu", function_type = (index, index) -> ()} : () -> ()')
    check(text, "a kernel's body is one block, not 2")



@pytest.mark.parametrize(
    ("body", "error"),
    [("%n = sym.value {dim = #sym<s0 + 1>} : index", None),
     ("%n = sym.bind %s {symbol = \"s1\"} : (index) -> index", "'sym.bind' has no place in a"),
     ("%n = math.exp %f : f32", None)],
)  # fmt: skip
def test_operations_of_other_dialects(body, error):
    head = "%f = arith.constant 1.0 : f32 "
    arguments = "%s: index"
    check(kernel(head + body, arguments, 'target = "gpu", symbols = ["s0"]'), error)
    check(kernel(head + body, f"{arguments}, {CPU}", 'target = "cpu", symbols = ["s0"]'), error)


VARIANT = kernel("", f"%x: {PTR}, %y: {PTR}, {CPU}", 'target = "cpu", outputs = array<i64: 1>MORE')


@pytest.mark.parametrize(
    ("base", "name", "variant", "error"),
    [
        (", initialized = array<i64: 0, 1>", "v", "", None),
        (", initialized = array<i64: 0, 1>", "w", "", "there is no kernel @w"),
        ("", "v", "", "is of a kernel with initialized outputs"),
        (", initialized = array<i64: 0, 1>", "v", ", initialized = array<i64: 0, 1>",
         "@v has none"),
    ],
)
def test_a_copying_variant_is_of_a_kernel_that_combines(base, name, variant, error):
    text = VARIANT.replace("MORE", f"{base}, copying = @{name}")
    check(text + VARIANT.replace("@k", "@v").replace("MORE", variant), error)


def test_a_copying_variant_takes_the_same_arrays():
    text = VARIANT.replace("MORE", ", initialized = array<i64: 0, 1>, copying = @v")
    other = VARIANT.replace("@k", "@v").replace("MORE", "").replace("%y: !kernel.ptr<f32>", "%y: "
                                                                    "!kernel.ptr<f64>")
    check(text + other, "@v takes other arrays than the kernel")


FLAG = "!kernel.ptr<i1>"


def checking(body: str, pointer: str = FLAG, target: str = "gpu") -> str:
    """A kernel that writes its last pointer; %t is a truth value, %m are eight."""
    head = """%c = arith.constant 0 : index
      %t = arith.constant true
      %m = arith.constant dense<true> : vector<8xi1>
      %four = arith.constant dense<true> : vector<4xi1>
      %n = arith.constant 1 : i32 """
    more = f", {CPU}" if target == "cpu" else ""
    attributes = f'target = "{target}", outputs = array<i64: 1>'
    return kernel(head + body, f"%x: {PTR}, %y: {pointer}{more}", attributes)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (checking(f"kernel.check %t, %y : (i1, {FLAG})"), None),
        (checking(f"kernel.check %m, %y, %t : (vector<8xi1>, {FLAG}, i1)"), None),
        (checking(f"kernel.check %m, %y : (vector<8xi1>, {FLAG})" * 2), None),
        (checking(f"kernel.check %t, %y : (i1, {FLAG})", target="cpu"), "is of gpu kernels"),
        (checking(f"kernel.check %n, %y : (i32, {FLAG})"), "checks i32, not i1"),
        (checking(f"kernel.check %t, %y : (i1, {PTR})", PTR), "not at a flag of i1"),
        (checking(f"kernel.check %m, %y, %four : (vector<8xi1>, {FLAG}, vector<4xi1>)"),
         "the mask is vector<4xi1>"),
        (checking(f"kernel.check %t, %y : (i1, {FLAG}) kernel.store %t, %y[%c] : i1"),
         "with which nothing else is done"),
        (checking(f"kernel.check %t, %x : (i1, {PTR})"), "not at a flag of i1"),
    ],
)  # fmt: skip
def test_checks(text, error):
    check(text, error)


def test_a_flag_is_an_output():
    body = f"%t = arith.constant true kernel.check %t, %x : (i1, {FLAG})"
    text = kernel(body, f"%x: {FLAG}, %y: {PTR}", 'target = "gpu", outputs = array<i64: 1>')
    check(text, "writes argument 0, which is not among the outputs")
