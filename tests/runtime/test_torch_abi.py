"""The facts about torch that native code relies on."""

import os
import re
from pathlib import Path

import pytest
import torch

from irc.boundary import aten_paths, torch_abi
from irc.boundary.templates import Dynamic
from irc.ir.diagnostics import UserError


def test_self_test_passes_on_the_supported_torch():
    assert torch_abi.self_test() is None


def test_environment_forces_the_slow_path(monkeypatch):
    monkeypatch.setenv("IRC_FORCE_SLOW_HOST", "1")
    assert not torch_abi.available() and "IRC_FORCE_SLOW_HOST" in torch_abi.unavailable_reason()
    monkeypatch.setenv("IRC_FORCE_SLOW_HOST", "0")
    assert torch_abi.available()


def test_a_fact_that_does_not_hold_is_named(monkeypatch):
    monkeypatch.setattr(torch_abi, "_find_key_offset", lambda probes: None)
    torch_abi.key_offset.cache_clear()
    try:
        assert "dispatch keys" in torch_abi.self_test()
    finally:
        torch_abi.key_offset.cache_clear()


def test_unknown_dtype_is_refused():
    with pytest.raises(ValueError, match="qint8"):
        torch_abi.dtype_code(torch.qint8)
    assert torch_abi.dtype_code(torch.float32) == 6


_C_TYPES = {
    "handle": "AtenTensorHandle",
    "handle?": "AtenTensorHandle*",
    "i64": "int64_t",
    "i64?": "int64_t*",
    "double": "double",
    "double?": "double*",
    "i32": "int32_t",
    "i32?": "int32_t*",
    "text": "const char*",
    "text?": "const char**",
    "i64s": "const int64_t*",
    "i64s?": "const int64_t**",
    "i32s": "const int32_t*",
    "handles": "const AtenTensorHandle*",
    "handles?": "const AtenTensorHandle**",
    "doubles?": "const double**",
    "length": "int64_t",
    "index": "int32_t",
    "result": "AtenTensorHandle*",
    "generator?": "AtenGeneratorHandle*",
}


def _declared_shims(device="cpu"):
    include = Path(torch.__file__).parent / "include/torch/csrc/inductor/aoti_torch"
    names = {
        "cpu": ("generated/c_shim_cpu.h", "c/shim_cpu.h"),
        "cuda": ("generated/c_shim_cuda.h",),
    }
    text = "".join((include / f).read_text() for f in names[device])
    declared = {}
    for match in re.finditer(rf"(aoti_torch_{device}_\w+)\(([^)]*)\)", text):
        parameters = [" ".join(p.split()) for p in match[2].split(",")]
        declared[match[1]] = [re.sub(r" ?\w+$", "", p) for p in parameters]
    return declared


def test_every_shim_has_the_signature_of_torchs_header():
    declared = _declared_shims()
    compared = 0
    for namespace, name, overload in sorted(aten_paths.SHIMS):
        symbol = aten_paths.shim_symbol(namespace, name, overload)
        if symbol not in declared:
            continue
        schema = torch._C._get_schema(f"{namespace}::{name}", overload)
        forms = [_C_TYPES[p.form] for p in aten_paths.shim_parameters(schema)]
        assert forms == declared[symbol], symbol
        compared += 1
    assert compared >= 120


def test_every_shim_of_a_gpu_has_the_signature_of_torchs_header():
    declared = _declared_shims("cuda")
    compared = 0
    for key in sorted(aten_paths.SHIMS | aten_paths.CUDA_SHIMS):
        symbol = aten_paths.shim_symbol(*key, "cuda")
        if symbol not in declared:
            assert key not in aten_paths.CUDA_SHIMS, symbol
            continue
        schema = torch._C._get_schema(f"{key[0]}::{key[1]}", key[2])
        forms = [_C_TYPES[p.form] for p in aten_paths.shim_parameters(schema)]
        results = [str(r.type) for r in schema.returns]
        for number, kind in enumerate(results):
            if kind == "int":
                forms[len(forms) - len(results) + number] = "int64_t*"
        assert forms == declared[symbol], symbol
        compared += 1
    assert compared >= 120


@pytest.mark.parametrize(
    "callee, floating, path",
    [
        ("aten.mm.out", True, "shim"),
        ("aten.addmm.out", True, "shim"),
        ("aten.addmm.out", False, "boxed"),
        ("aten.mm.default", True, "dispatcher"),
        ("aten._softmax.default", True, "dispatcher"),
        ("aten.mul.Scalar", False, "boxed"),
        ("aten.linalg_svd.default", True, "dispatcher"),
        ("aten.bernoulli.default", True, "boxed"),
        ("aten.split.Tensor", True, "boxed"),
    ],
)
def test_path_of_an_operator(callee, floating, path):
    op = aten_paths.find_operator(callee)
    assert aten_paths.classify(op, floating=floating).name == path


def test_unknown_operator_is_an_error():
    with pytest.raises(UserError, match="torch has no operator aten.no_such_op"):
        aten_paths.find_operator("aten.no_such_op.default")


def test_boxed_callable_fills_lists_and_names():
    call = aten_paths.boxed_callable(
        "aten.cat.default",
        (("tensors", (Dynamic(0), Dynamic(1))), ("dim", 0)),
    )
    assert call(torch.ones(1), torch.zeros(1))[0].tolist() == [1.0, 0.0]
    full = aten_paths.boxed_callable(
        "aten.full.default",
        (
            ("size", (2, Dynamic(0))),
            ("fill_value", 1),
            ("dtype", aten_paths.Named("dtype", "int16")),
        ),
    )
    assert full(3)[0].shape == (2, 3) and full(3)[0].dtype == torch.int16
    with pytest.raises(ValueError, match="dtype"):
        aten_paths.Named("dtype", "os").resolve()
    assert os.name


def test_the_keys_of_plain_tensors_are_learned_in_inference_mode_too():
    learn = torch_abi.dense_cpu_keys.__wrapped__
    with torch.inference_mode():
        found = learn()
    assert found == learn() == torch_abi.dense_cpu_keys()
