"""`scaled_dot_product_attention` stays the kernel that eager mode runs, with the same arguments."""

import re

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

import irc
from irc.frontend import backend

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
KERNEL = re.compile(r"_scaled_dot_product_\w*|_safe_softmax|_softmax|bmm")


class Kernels(TorchDispatchMode):
    """Which kernels for attention eager mode calls."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names += KERNEL.findall(str(function))
        return function(*args, **(kwargs or {}))


def called(function, given, dynamic=None):
    """The kernels of a compiled function's programs; its result and gradients."""
    torch._dynamo.reset()
    with backend.recording() as compiled:
        made = torch.compile(function, backend="irc", dynamic=dynamic)(*given)
        if made.requires_grad:
            made.backward(torch.ones_like(made))
    texts = [irc.print_op(entry.imported.module) for entry in compiled]
    names = [n for text in texts for n in re.findall(r"= aten\.(\w+)", text) if KERNEL.match(n)]
    return names, [made.detach(), *(g.grad for g in given if g.requires_grad)]


def heads(device, length=5, count=4, width=8, dtype=torch.float32, grad=False):
    made = torch.randn(2, length, count, width).to(dtype).transpose(1, 2).to(device)
    return made.detach().requires_grad_(grad)


def attend(**keywords):
    return lambda q, k, v, *mask: F.scaled_dot_product_attention(q, k, v, *mask, **keywords)


def check(function, given, dynamic=None):
    eager = [g.detach().clone().requires_grad_(g.requires_grad) for g in given]
    torch.manual_seed(3)
    with Kernels() as kernels:
        wanted = function(*eager)
        if wanted.requires_grad:
            wanted.backward(torch.ones_like(wanted))
    torch.manual_seed(3)
    names, found = called(function, given, dynamic)
    fused = [n for n in kernels.names if n.startswith("_scaled")]
    assert [n for n in names if n.startswith("_scaled")] == fused
    wanted = [wanted.detach(), *(g.grad for g in eager if g.requires_grad)]
    for mine, exact in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, exact, atol=1e-5, rtol=1e-5)
        assert not fused or mine.stride() == exact.stride()
    return fused


FORMS = {
    "plain": (attend(), {}, None),
    "causal": (attend(is_causal=True), {}, None),
    "causal of other lengths": (attend(is_causal=True), {"keys": 7}, None),
    "scale": (attend(scale=0.3), {"keys": 3}, None),
    "groups": (attend(enable_gqa=True), {"shared": 2}, None),
    "bool mask": (attend(), {}, lambda: torch.rand(2, 1, 1, 5) > 0.3),
    "mask of two dimensions": (attend(), {"keys": 7}, lambda: torch.rand(5, 7) > 0.3),
    "expanded mask": (attend(), {}, lambda: torch.randn(2, 1, 5, 5).expand(2, 4, 5, 5)),
    "one row": (attend(), {"queries": 1, "keys": 9}, None),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("grad", (False, True))
@pytest.mark.parametrize("form", FORMS)
def test_forms(form, grad, device):
    function, sizes, mask = FORMS[form]
    torch.manual_seed(1)
    keys, shared = sizes.get("keys", 5), sizes.get("shared", 4)
    given = [heads(device, sizes.get("queries", 5), grad=grad),
             heads(device, keys, shared, grad=grad), heads(device, keys, shared, grad=grad)]
    given += [] if mask is None else [mask().to(device)]
    # A GPU has no kernel for grouped heads in f32.
    assert check(function, given) or (form, device) == ("groups", "cuda")


@pytest.mark.parametrize("device", DEVICES)
def test_dynamic_sizes(device):
    assert check(attend(), [heads(device, n, grad=True) for n in (5, 7, 7)], dynamic=True)


@pytest.mark.parametrize("device", DEVICES)
def test_autocast(device):
    def cast(q, k, v):
        with torch.autocast(device, dtype=torch.bfloat16):
            return attend()(q, k, v)

    assert check(cast, [heads(device) for _ in range(3)])


@pytest.mark.parametrize("device", DEVICES)
def test_dropout_draws_eagers_numbers(device):
    check(attend(dropout_p=0.3), [heads(device) for _ in range(3)])


def test_a_kernel_that_is_switched_off_is_not_called():
    with sdpa_kernel(SDPBackend.MATH):
        assert not check(attend(), [heads("cpu") for _ in range(3)])


def test_views_of_one_projection_are_not_copied():
    def packed(x):
        q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in x.chunk(3, -1))
        return attend()(q, k, v).transpose(1, 2).flatten(2)

    made = irc.compile(packed, (torch.randn(2, 5, 96),))
    assert made.executable.info.metrics == {"kernels": 0, "launches": 0, "aten_calls": 1}
