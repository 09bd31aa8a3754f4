"""Vectors from elsewhere are read, compared on both paths, and refused with a reason when they are none."""

import json

import numpy as np
import pytest

from kdx.attention.verification.golden import agreements
from kdx.errors import KdxError


def test_all_vectors_hold_on_both_paths_and_in_both_formats(shared):
    found = list(agreements(shared / "golden" / "attention.npz"))
    assert len(found) == 182 * 4
    assert not [one for one in found if not one.holds]


@pytest.fixture
def one_case(shared, tmp_path):
    """A file with one case, to be tampered with."""
    case = "exponential-asym-product-fv-causal"
    with np.load(shared / "golden" / "attention.npz") as archive:
        arrays = {key: archive[key] for key in archive.files if key.startswith(f"{case}/")}
    factors = json.loads((shared / "golden" / "attention.json").read_text())[case]

    def write(changed_arrays=None, **changed_factors):
        file = tmp_path / "vectors.npz"
        np.savez(file, **(arrays | {f"{case}/{name}": array for name, array in (changed_arrays or {}).items()}))
        (tmp_path / "vectors.json").write_text(json.dumps({case: factors | changed_factors}))
        return file

    return write, arrays, case


def test_a_wrong_number_is_found_out(one_case):
    write, arrays, case = one_case
    output = arrays[f"{case}/output"].copy()
    for error, formats in ((1e-12, ["float64"]), (1e-3, ["float64", "float32"])):
        output[2, 1] = arrays[f"{case}/output"][2, 1] + error
        missed = [one.check for one in agreements(write({"output": output})) if not one.holds]
        assert missed == [f"{path} {dtype}" for dtype in formats for path in ("literal", "fused")]


def test_a_wrong_weight_is_found_out_on_the_path_that_has_weights(one_case):
    write, arrays, case = one_case
    weights = arrays[f"{case}/weights"].copy()
    weights[2, 1] += 1e-3
    missed = [one.check for one in agreements(write({"weights": weights})) if not one.holds]
    assert missed == ["literal float64", "literal float32"]


def test_another_kernel_is_found_out(one_case):
    write, _, _ = one_case
    assert not any(one.holds for one in agreements(write(kernel="rbf")))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kernel": "rfb"}, "kernel: 'rfb'; allowed: linear, "),
        ({"position": "sideways"}, "positions: 'sideways'; allowed: "),
        ({"clip": "near", "position": "lookup"}, "clip: 'near'; allowed: a whole number"),
        ({"normaliser": "length"}, "unknown factor `normaliser`\n  allowed: kernel, symmetric, "),
    ],
)
def test_an_unknown_factor_is_told(one_case, change, told):
    with pytest.raises(KdxError, match=r"vectors\.\w+: case `exponential-asym-product-fv-causal`: ") as refusal:
        list(agreements(one_case[0](**change)))
    assert told in str(refusal.value)


def test_what_is_no_file_of_vectors_is_refused(tmp_path):
    with pytest.raises(KdxError, match=r"absent.json: cannot read the vectors: No such file"):
        list(agreements(tmp_path / "absent.npz"))
    (tmp_path / "bad.json").write_text('{"one": {"kernel": "rbf"}}')
    np.savez(tmp_path / "bad.npz", x=np.zeros(1))
    with pytest.raises(KdxError, match=r"bad\.json: case `x` of bad\.npz has no factors"):
        list(agreements(tmp_path / "bad.npz"))
    whole = (tmp_path / "bad.npz").read_bytes()
    for content in (b"", b"no archive", whole[:-30]):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(KdxError, match=r"bad\.npz: these are no vectors"):
            list(agreements(tmp_path / "bad.npz"))
    np.savez(tmp_path / "bad.npz", **{"one/W_q": np.zeros((2, 2))})
    with pytest.raises(KdxError, match=r"bad\.npz: case `one`: `\w+` is missing"):
        list(agreements(tmp_path / "bad.npz"))
