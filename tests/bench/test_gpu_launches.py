"""`bench.gpu_launches`: two sides' launches are cut where both call a library."""

from bench.gpu_launches import Launch, family_of, stretches


def launched(*named: tuple[str, float]) -> list[Launch]:
    return [Launch(us, name, "") for name, us in named]


def test_a_compilers_kernel_is_no_librarys_whatever_it_is_named_after():
    names = {
        "nvjet_tst_64x8_64x16_4x1_v_bz_TNT": "product",
        "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32": "convolution",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma": "attention",
        "triton_poi_fused_addmm_convolution_0": None,
        "k12": None,
        "void at::native::vectorized_elementwise_kernel<4>": None,
    }
    assert {n: family_of(Launch(1.0, n, "")) for n in names} == names


def test_stretches_between_products_are_compared_as_wholes():
    mine = launched(("k0", 2.0), ("nvjet_a", 5.0), ("k1", 3.0), ("nvjet_b", 4.0))
    theirs = launched(("triton_0", 1.0), ("triton_1", 1.5), ("nvjet_a", 5.1), ("triton_2", 1.0),
                      ("triton_3", 1.0), ("nvjet_c", 4.0), ("triton_4", 2.0))  # fmt: skip
    every = list(stretches(mine, theirs))
    assert [s.us for s in every] == [(2.0, 2.5), (5.0, 5.1), (3.0, 2.0), (4.0, 4.0), (0, 2.0)]
    assert [s.behind for s in every] == [False, False, True, False, False]
    assert [s.family for s in every] == [None, "product", None, "product", None]


def test_a_library_call_of_one_side_alone_stays_in_a_stretch():
    mine = launched(("nvjet_a", 5.0), ("k1", 3.0), ("nvjet_b", 4.0))
    theirs = launched(("nvjet_a", 5.0), ("fmha_forward", 1.0), ("nvjet_b", 4.0))
    assert [s.us for s in stretches(mine, theirs)] == [(5.0, 5.0), (3.0, 1.0), (4.0, 4.0)]
