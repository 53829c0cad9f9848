"""Masks of `scaled_dot_product_attention` are judged where a program is traced: one that says
nothing is left out, and what a kernel can be told is no mask."""

import math
import re

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import irc
from irc.frontend import backend
from irc.frontend.fx import attention_calls

B, H, L, S, D = 2, 3, 5, 7, 4
LOW = torch.finfo(torch.float32).min
#: The call of the kernel, with the names of what it is given.
CALL = re.compile(r"= aten\._scaled_dot_product_(\w+)\.default (.*?) \{arguments = \{(.*?)\}")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def like_a_gpu(monkeypatch):
    """No fused kernel takes a mask whose last stride isn't 1; those of this machine do."""
    monkeypatch.setattr(
        attention_calls, "_has_kernel", lambda q, k, v, mask, shares: mask.stride(-1) == 1
    )


def heads(length=L, count=H, device="cpu", grad=False):
    made = torch.randn(B, length, count, D, device=device).transpose(1, 2)
    return made.detach().requires_grad_(grad)


def given(device="cpu", grad=False):
    return [heads(L, device=device, grad=grad), heads(S, device=device, grad=grad),
            heads(S, device=device, grad=grad)]  # fmt: skip


def attend(mask, **keywords):
    """A function whose mask `mask` makes for its operands and further arguments."""

    def function(q, k, v, *rest):
        return F.scaled_dot_product_attention(q, k, v, mask(q, k, *rest), **keywords)

    return function


def bidirectional(q, k):
    """As transformers makes it for a program that is compiled."""
    queries = (torch.arange(q.shape[2], device=q.device) + 0)[None, None, :, None]
    return (queries >= 0).expand(q.shape[0], -1, q.shape[2], k.shape[2])


def packed(q, k):
    """As transformers makes a causal one, for positions that no caller gives."""
    places = (torch.arange(q.shape[2], device=q.device) + 0)[None].expand(q.shape[0], -1)
    first = places[:, :1] - 1
    parts = (torch.diff(places, prepend=first, dim=-1) != 1).cumsum(-1)
    batch = torch.arange(q.shape[0], device=q.device)[:, None, None, None]
    own = torch.arange(q.shape[2], device=q.device)[None, None, :, None]
    other = torch.arange(k.shape[2], device=q.device)[None, None, None, :]
    same = parts[batch, own] == parts[batch, other]
    seen = own.new_ones((), dtype=torch.bool) & (other <= own) & same
    return seen.expand(q.shape[0], -1, q.shape[2], k.shape[2])


def ones(q, k):
    return torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device)


def zeros(q, k):
    return torch.zeros(1, 1, q.shape[-2], k.shape[-2], device=q.device)


def tril(q, k):
    return ones(q, k).tril()


def added_tril(q, k):
    return torch.where(tril(q, k), 0.0, LOW)


def all_but_one(q, k):
    mask = ones(q, k)
    mask[1, 2] = False
    return mask


def first_key(q, k):
    """A row for all queries, as a causal one's first."""
    return torch.arange(k.shape[2], device=q.device)[None] < 1


def slid(q, k):
    near = ones(q, k).triu(-1)
    return tril(q, k) & near


def calls(function, arguments, dynamic=None, options=None):
    """The kernels that programs call, with what they are given; result and gradients."""
    torch._dynamo.reset()
    with backend.recording() as compiled:
        run = torch.compile(function, backend="irc", dynamic=dynamic, options=options)
        made = run(*arguments)
        if made.requires_grad:
            made.backward(torch.ones_like(made))
    text = "".join(irc.print_op(entry.imported.module) for entry in compiled)
    found = [(name, words) for name, _, words in CALL.findall(text) if "backward" not in name]
    return found, [made.detach(), *(a.grad for a in arguments if a.requires_grad)], text


def is_masked(words):
    return re.search(r"attn_(mask|bias) = #aten.operand", words) is not None


def check(function, arguments, dynamic=None, tolerance=5e-6):
    """The kernel's arguments, after its values were compared to eager mode's in f64."""
    wide = [a.detach().double() if a.is_floating_point() else a for a in arguments]
    wide = [w.requires_grad_(a.requires_grad) for w, a in zip(wide, arguments, strict=True)]
    wanted = function(*wide)
    if wanted.requires_grad:
        wanted.backward(torch.ones_like(wanted))
    found, mine, _ = calls(function, arguments, dynamic)
    expected = [wanted.detach(), *(w.grad for w in wide if w.requires_grad)]
    for own, exact in zip(mine, expected, strict=True):
        torch.testing.assert_close(own.double(), exact, atol=tolerance, rtol=tolerance)
    ((_, words),) = found
    return words


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("grad", (False, True))
@pytest.mark.parametrize("mask", (bidirectional, ones, zeros), ids=lambda f: f.__name__)
def test_a_mask_that_says_nothing_is_left_out(mask, grad, device):
    words = check(attend(mask), given(device, grad))
    assert not is_masked(words) and "is_causal = true" not in words


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("grad", (False, True))
@pytest.mark.parametrize("mask", (tril, added_tril, packed), ids=lambda f: f.__name__)
def test_a_causal_mask_is_a_flag(mask, grad, device):
    arguments = given(device, grad)
    if mask is packed:
        arguments[0] = heads(S, device=device, grad=grad)
    words = check(attend(mask), arguments)
    assert "is_causal = true" in words and not is_masked(words)


@pytest.mark.parametrize("mask", (all_but_one, first_key, slid), ids=lambda f: f.__name__)
def test_other_masks_of_constants_stay(mask):
    words = check(attend(mask), given())
    assert "attn_mask" in words and "is_causal" not in words


@pytest.mark.parametrize("dynamic", (False, True))
def test_sizes_need_not_be_known(dynamic):
    assert "attn_mask" not in check(attend(bidirectional), given(), dynamic=dynamic)


def rows(q, k, mask):
    return mask[:, None, :, None].expand(-1, 1, -1, k.shape[-2])


def row(q, k, mask):
    return mask[:, None, :, None]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("grad", (False, True))
@pytest.mark.parametrize("mask", (rows, row), ids=lambda f: f.__name__)
def test_a_mask_of_queries_selects_rows(mask, grad, device):
    seen = torch.rand(B, L, device=device) > 0.5
    seen[0, :2] = torch.tensor([True, False])
    words = check(attend(mask), [*given(device, grad), seen])
    assert not is_masked(words)


def test_rows_that_see_nothing_keep_nan_of_the_values(like_a_gpu):
    """0 * NaN is NaN in eager mode's product, too."""
    q, k, v = given()
    v[0, 1, 2] = math.nan
    v[1, 0, 1] = math.inf
    seen = torch.tensor([[True, False, True, False, True]] * B)
    eager = attend(rows)(q, k, v, seen)
    _, (found,), _ = calls(attend(rows), [q, k, v, seen])
    torch.testing.assert_close(found, eager, equal_nan=True)


def transposed(q, k, mask):
    return mask.transpose(-1, -2)


@pytest.mark.parametrize("grad", (False, True))
def test_a_mask_with_other_strides_is_copied(like_a_gpu, grad):
    seen = torch.rand(B, 1, S, L) > 0.5
    seen[0, 0, :, 1] = False
    words = check(attend(transposed), [*given(grad=grad), seen])
    assert "attn_mask" in words


@pytest.mark.parametrize("low", (-math.inf, LOW, -3.0))
def test_what_is_added_with_other_strides_is_copied(like_a_gpu, low):
    bias = torch.randn(1, H, S, L)
    bias[:, :, ::2] = low
    bias[0, 1, :, 3] = low
    function = attend(transposed)
    q, k, v = given()
    eager = function(q, k, v, bias)
    found, (mine,), text = calls(function, [q, k, v, bias])
    torch.testing.assert_close(mine, eager, atol=2e-6, rtol=2e-6)
    assert len(found) == 1 and "aten.amax" in text
    assert mine.stride() == (H * L * D, L * D, D, 1)  # as torch's own decomposition gives it


def test_what_is_added_and_bounded_is_only_copied(like_a_gpu):
    def bounded(q, k, mask):
        return torch.where(mask.transpose(-1, -2), 0.0, -5000.0).transpose(0, 1).transpose(0, 1)

    arguments = [*given(grad=True), torch.rand(B, 1, S, L) > 0.5]
    check(attend(bounded), arguments)
    _, _, text = calls(attend(bounded), [a.detach() for a in arguments])
    assert "aten.amax" not in text


def test_gradients_of_what_is_added_stay(like_a_gpu):
    arguments = [*given(grad=True), torch.randn(1, H, S, L, requires_grad=True)]
    wide = [a.detach().double().requires_grad_() for a in arguments]
    wanted = attend(transposed)(*wide)
    wanted.backward(torch.ones_like(wanted))
    found, mine, _ = calls(attend(transposed), arguments)
    assert not found  # torch takes it apart, which has a gradient for the mask
    for own, exact in zip(mine, [wanted, *(w.grad for w in wide)], strict=True):
        torch.testing.assert_close(own.double(), exact, atol=2e-6, rtol=2e-6)


def test_a_mask_that_is_written_is_not_what_it_was():
    def written(q, k):
        mask = ones(q, k)
        seen = mask.view(-1)
        seen[3] = False
        return mask

    assert "attn_mask" in check(attend(written), given())
    made = irc.compile(attend(written), given())
    assert "attn_mask" in irc.print_op(made.module)


def test_programs_without_dynamo():
    made = irc.compile(attend(bidirectional), given())
    ((_, words),) = [(a, c) for a, _, c in CALL.findall(irc.print_op(made.module))]
    assert "attn_mask" not in words
    written = irc.print_op(irc.trace(attend(bidirectional), given()))
    assert "attn_mask" in written


def test_an_exported_program():
    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return attend(bidirectional)(q, k, v)

    exported = torch.export.export(Model(), tuple(given()))
    assert "attn_mask" not in irc.print_op(irc.compile(exported).module)


def test_a_layer_that_is_computed_again():
    def again(q, k, v):
        return checkpoint(attend(bidirectional), q, k, v, use_reentrant=False)

    found, _, _ = calls(again, given(grad=True))
    assert found and all("attn_mask" not in words for _, words in found)


def test_dropped_probabilities_keep_their_numbers():
    """Another kernel would draw others."""
    function, arguments = attend(bidirectional, dropout_p=0.4), given()
    torch.manual_seed(5)
    eager = function(*arguments)
    torch.manual_seed(5)
    _, (found,), text = calls(function, arguments)
    torch.testing.assert_close(found, eager)
    assert "_softmax" in text


@pytest.mark.parametrize("options", ({"pattern_matcher": False}, {"emulate_rounding": True}))
def test_options_that_switch_it_off(options):
    ((_, words),), _, _ = calls(attend(bidirectional), given(), options=options)
    assert "attn_mask" in words


@pytest.mark.parametrize(
    ("mask", "message"),
    [(bidirectional, "its mask is proven to change no score and not read"),
     (lambda q, k: torch.ones(L, S, dtype=torch.bool).tril(), "its mask is proven to be causal"),
     (lambda q, k: q[:, :1, :, :1] > 0, "its mask is the same for all keys of a query")],
)  # fmt: skip
@pytest.mark.parametrize("grad", [False, True])
def test_a_remark_tells_once_what_became_of_a_mask(mask, message, grad, capfd):
    function, arguments = attend(mask), given(grad=grad)
    for options, count in (({}, 0), ({"remarks": "fold"}, 0), ({"remarks": "its mask"}, 1)):
        torch._dynamo.reset()
        torch.compile(function, backend="irc", options=options)(*arguments)
        assert capfd.readouterr().err.count(message) == count
    irc.compile(function, [a.detach() for a in arguments], options={"remarks": "its mask"})
    (line,) = (line for line in capfd.readouterr().err.splitlines() if message in line)
    assert "test_attention_masks.py:" in line and "[fuse-attention]" in line


def test_a_mask_is_judged_once_for_many_layers(monkeypatch):
    from irc.passes.graph.attention import facts

    asked = []
    known_mask = facts.known_mask
    monkeypatch.setattr(facts, "known_mask", lambda *a: asked.append(a) or known_mask(*a))

    def layers(q, k, v):
        mask = bidirectional(q, k)
        for _ in range(4):
            q = F.scaled_dot_product_attention(q, k, v, mask)
        return q

    found, _, _ = calls(layers, given())
    assert len(found) == 4 and len(asked) == 1


# -- models


def model(name, **options):
    transformers = pytest.importorskip("transformers")
    small = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4)
    config = getattr(transformers, f"{name}Config")(**small, **options)
    return getattr(transformers, f"{name}Model")(config).eval()


def as_it_was(monkeypatch):
    """transformers 5.17, which gives a mask to every attention that is traced."""
    masking = pytest.importorskip("transformers.masking_utils")
    for name in ("_ignore_bidirectional_mask_sdpa", "_ignore_causal_mask_sdpa"):
        monkeypatch.setattr(masking, name, lambda *given, **named: False)


@pytest.mark.parametrize("name", ("Bert", "ViT", "Llama"))
def test_models_call_the_kernel_without_a_mask(name, monkeypatch, like_a_gpu):
    as_it_was(monkeypatch)
    made = {
        "Bert": lambda: (model("Bert", vocab_size=50), torch.randint(0, 50, (2, 9))),
        "ViT": lambda: (model("ViT", image_size=32, patch_size=8), torch.randn(2, 3, 32, 32)),
        "Llama": lambda: (model("Llama", num_key_value_heads=2, vocab_size=50),
                          torch.randint(0, 50, (2, 9))),
    }  # fmt: skip
    module, argument = made[name]()

    def first(x):
        with torch.no_grad():
            return module(x, return_dict=False)[0]

    found, (mine,), _ = calls(first, [argument])
    assert len(found) == 3 and all("attn_mask" not in words for _, words in found)
    assert all(("is_causal = true" in words) == (name == "Llama") for _, words in found)
    torch.testing.assert_close(mine, first(argument), atol=1e-5, rtol=1e-5)


def test_a_model_whose_caller_pads(monkeypatch):
    as_it_was(monkeypatch)
    module = model("Bert", vocab_size=50)
    kept = (torch.arange(9)[None] < torch.tensor([[9], [4], [1]])).long()

    def first(x, kept):
        with torch.no_grad():
            return module(x, attention_mask=kept, return_dict=False)[0]

    arguments = [torch.randint(0, 50, (3, 9)), kept]
    found, (mine,), _ = calls(first, arguments)
    assert len(found) == 3 and all("attn_mask" in words for _, words in found)
    torch.testing.assert_close(mine, first(*arguments), atol=1e-5, rtol=1e-5)
