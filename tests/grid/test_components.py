"""A grid names custom components as it names any word; what is wrong with one is reported before anything starts."""

from dataclasses import replace
from pathlib import Path

import pytest

from kdx.attention.kernels import KERNELS
from kdx.components.registry import at_hand, know
from kdx.errors import Faults
from kdx.grid.components import add_installed, find_components
from kdx.grid.explain import explain
from kdx.grid.load import load_grid
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.source import read
from tests.conftest import forget_components

WORD = "my_kernels.py:Cauchy"


def faults_of(folder: Path, grid: str | None = None) -> list[str]:
    if grid is not None:
        (folder / "grid.yaml").write_text(grid)
    with pytest.raises(Faults) as caught:
        load_grid(folder / "grid.yaml")
    return [str(one).replace(f"{folder}/", "") for one in caught.value.faults]


def test_a_cell_has_the_component_its_options_and_the_hash_of_its_source(own_kernel):
    grid = (own_kernel / "grid.yaml").read_text() + "bandwidth: 2\n"
    (own_kernel / "grid.yaml").write_text(grid)
    (cell,) = load_grid(own_kernel / "grid.yaml").cells
    (part,) = at_hand()
    assert (cell.spec.kernel, cell.spec.option("bandwidth")) == (WORD, 2.0)
    assert cell.spec.components == {WORD: part.sha256} and part.sha256 in cell.spec.text


def test_a_file_that_is_moved_or_renamed_leaves_the_cell_and_another_class_of_it_makes_another(own_kernel):
    def identity(word: str) -> str:
        grid = (own_kernel / "grid.yaml").read_text().replace(WORD, word)
        (own_kernel / "moved.yaml").write_text(grid)
        (cell,) = load_grid(own_kernel / "moved.yaml").cells
        assert cell.spec.kernel == word
        return cell.id

    first = identity(WORD)
    with (own_kernel / "my_kernels.py").open("a") as file:
        file.write("\n\nclass Other(Cauchy):\n    pass\n")
    edited = identity(WORD)
    assert edited not in (first, identity("my_kernels.py:Other"))
    (own_kernel / "parts").mkdir()
    for old, new in (("my_kernels.py", "parts/mine.py"), ("helpers.py", "parts/helpers.py")):
        (own_kernel / old).rename(own_kernel / new)
    assert identity("parts/mine.py:Cauchy") == edited != identity("parts/mine.py:Other")


def test_a_search_over_a_component_is_the_same_after_its_file_was_moved(own_kernel):
    tune = "tune: {parameters: {kernel: [rbf, %s]}, trials: 2, sampler: grid}\n"
    plain = (own_kernel / "grid.yaml").read_text().replace(f"kernel: {WORD}\n", "kernel: rbf\n")

    def search(word: str) -> str:
        (own_kernel / "tuned.yaml").write_text(plain + tune % f"'{word}'")
        (cell,) = load_grid(own_kernel / "tuned.yaml").cells
        return cell.search.id

    first = search(WORD)
    (own_kernel / "my_kernels.py").rename(own_kernel / "mine.py")
    assert search("mine.py:Cauchy") == first


def test_a_cell_without_such_a_part_is_the_one_that_it_was(own_kernel):
    grid = (own_kernel / "grid.yaml").read_text().replace(f"kernel: {WORD}", f'axes: {{kernel: ["{WORD}", rbf]}}')
    (own_kernel / "grid.yaml").write_text(grid)
    _, common = load_grid(own_kernel / "grid.yaml").cells
    assert common.spec.components == {} and '"components":{}' in common.spec.text


def test_parts_stand_wherever_a_word_does(own_kernel):
    (own_kernel / "others.py").write_text(
        "from kdx.attention.filters.causal import Causal\n"
        "from kdx.attention.positions.rotary import Rotary\n"
        "from kdx.data.corpora.copy import Copy\n"
        "class Mine(Causal): pass\n"
        "class Turned(Rotary): pass\n"
        "class Twice(Copy): pass\n"
    )
    (own_kernel / "grid.yaml").write_text(
        "task: answer\n"
        "data: {length: 4}\n"
        "filter: {decoder-self: 'others.py:Mine'}\n"
        "approaches: {one: {position: ['others.py:Turned', t5]}}\n"
        "axes: {data.corpus: ['others.py:Twice', copy]}\n"
    )
    own, common = load_grid(own_kernel / "grid.yaml").cells
    assert own.spec.position == ("t5", "others.py:Turned")
    assert set(own.spec.components) == {"others.py:Mine", "others.py:Turned", "others.py:Twice"}
    assert set(common.spec.components) == {"others.py:Mine", "others.py:Turned"}
    assert own.spec.data.option("length") == 4


def test_a_file_is_looked_for_beside_the_grid_that_names_it(own_kernel, tmp_path):
    (tmp_path / "child.yaml").write_text("extends: own/grid.yaml\nseeds: 2\n")
    (cell,) = load_grid(tmp_path / "child.yaml").cells
    assert cell.spec.kernel == WORD
    (tmp_path / "my_kernels.py").write_text((own_kernel / "my_kernels.py").read_text() + "MORE = 1\n")
    (tmp_path / "helpers.py").write_text("")
    (tmp_path / "child.yaml").write_text(f"extends: own/grid.yaml\nkernel: linear\naxes: {{kernel: ['{WORD}']}}\n")
    (cell,) = load_grid(tmp_path / "child.yaml").cells
    (part,) = at_hand()
    assert "MORE" in part.sources["my_kernels.py"]


def test_one_word_for_two_files_is_refused(own_kernel, tmp_path):
    (tmp_path / "my_kernels.py").write_text((own_kernel / "my_kernels.py").read_text() + "MORE = 1\n")
    (tmp_path / "helpers.py").write_text("")
    (tmp_path / "grid.yaml").write_text(f"extends: own/grid.yaml\napproaches: {{other: {{kernel: '{WORD}'}}}}\n")
    (fault,) = faults_of(tmp_path)
    assert fault.endswith(f"`{WORD}` is another file here than in the grid that this one extends")


def test_a_component_is_read_once_however_often_a_grid_names_it(own_kernel, monkeypatch):
    read_files = []
    monkeypatch.setattr(
        "kdx.components.find.read_file", lambda path, most: read_files.append(path) or path.read_bytes()
    )
    approaches = ", ".join(f"a{number}: {{kernel: '{WORD}'}}" for number in range(50))
    (own_kernel / "grid.yaml").write_text(f"approaches: {{{approaches}}}\n")
    find_components(read(own_kernel / "grid.yaml", []), ())
    assert len(read_files) == 2


def test_what_is_wrong_with_a_part_is_reported_once_however_often_a_grid_names_it(own_kernel):
    (own_kernel / "my_kernels.py").write_text("def f(:\n")
    (fault,) = faults_of(own_kernel, f"approaches: {{a: {{kernel: '{WORD}'}}, b: {{kernel: '{WORD}'}}}}\n")
    assert fault.startswith("my_kernels.py:1:7: no Python")


def test_options_of_components_of_another_grid_are_no_matter(own_kernel):
    load_grid(own_kernel / "grid.yaml")
    text = (own_kernel / "my_kernels.py").read_text().replace("option(1.0", "option(2.0")
    (own_kernel / "others.py").write_text(text)
    grid = (own_kernel / "grid.yaml").read_text()
    (own_kernel / "grid.yaml").write_text(grid.replace("my_kernels.py", "others.py"))
    (cell,) = load_grid(own_kernel / "grid.yaml").cells
    assert cell.spec.option("bandwidth") == 2.0
    (fault,) = faults_of(
        own_kernel, grid.replace(f"kernel: {WORD}", f"axes: {{kernel: ['{WORD}', 'others.py:Cauchy']}}")
    )
    assert f"option `bandwidth` of `others.py:Cauchy` differs from that of `{WORD}`" in fault


@pytest.mark.parametrize(
    ("word", "messages"),
    [
        (
            "my_kernels.py:Couchy",
            "my_kernels.py:1:1: no class `Couchy`\n  allowed: Cauchy\n  hint: did you mean `Cauchy`?",
        ),
        ("absent.py:A", "grid.yaml:6:9: absent.py: cannot read the file: No such file or directory"),
    ],
)
def test_a_component_that_is_none_is_reported_with_its_place(own_kernel, word, messages):
    (fault,) = faults_of(own_kernel, (own_kernel / "grid.yaml").read_text().replace(WORD, word))
    assert fault.startswith(messages)


def test_an_option_of_a_part_is_checked_like_any_other(own_kernel):
    grid = (own_kernel / "grid.yaml").read_text()
    (fault,) = faults_of(own_kernel, grid + "bandwidth: 0\n")
    assert fault == "grid.yaml:7:12: `0` as bandwidth\n  allowed: a number above 0"
    (fault,) = faults_of(own_kernel, grid + "bandwith: 1\n")
    assert "unknown key `bandwith`" in fault and "did you mean `bandwidth`?" in fault


def test_an_option_of_a_part_is_set_on_the_command_line_like_any_other(own_kernel):
    (cell,) = load_grid(own_kernel / "grid.yaml", given=["bandwidth=3"]).cells
    assert cell.spec.option("bandwidth") == 3.0
    with pytest.raises(Faults, match=r"--set bandwith=3: unknown key `bandwith`(?s:.*)did you mean `bandwidth`"):
        load_grid(own_kernel / "grid.yaml", given=["bandwith=3"])


def test_a_file_on_the_command_line_is_looked_for_from_here(own_kernel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (cell,) = load_grid(own_kernel / "grid.yaml", given=[f"kernel={own_kernel.name}/{WORD}"]).cells
    assert cell.spec.kernel.endswith(WORD)


def test_an_option_cannot_have_the_name_of_a_key_of_every_cell(own_kernel):
    file = own_kernel / "my_kernels.py"
    text = file.read_text()
    for key in ("norm", "seeds"):
        file.write_text(text.replace("bandwidth: float", f"{key}: float"))
        (fault,) = faults_of(own_kernel)
        assert f"option `{key}` of `my_kernels.py:Cauchy` has the name of a key that every grid or cell has" in fault


def test_a_word_of_kdx_is_never_looked_for_elsewhere(own_kernel, monkeypatch):
    (own_kernel / "grid.yaml").write_text("kernel: rbf\nposition: none\ndata: {corpus: copy}\n")
    monkeypatch.setattr("kdx.grid.components.find", pytest.fail)
    assert find_components(read(own_kernel / "grid.yaml", []), ()) == []


def test_a_recorded_cell_is_known_by_its_recorded_source(own_kernel):
    (cell,) = load_grid(own_kernel / "grid.yaml").cells
    (component,) = at_hand()
    text, sha256 = cell.spec.text, cell.spec.components[WORD]
    assert ResolvedSpec.read(text).missing_components == {}
    forget_components()
    alone = ResolvedSpec.read(text)
    assert alone.known is None and f"kernel `{WORD}`" in alone.unknown and alone.word("kernel") == WORD
    know([replace(component, recorded=True)])
    elsewhere = ResolvedSpec.read(text)
    assert elsewhere.missing_components == {("kernel", WORD): sha256} and elsewhere.unknown == ()
    assert elsewhere.known == cell.spec


@pytest.fixture
def package(tmp_path, monkeypatch, own_kernel):
    """An installed package that brings the kernel `cauchy`, and one that is not there."""
    about = tmp_path / "site" / "tails-1.2.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tails\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text("[kdx.kernels]\ncauchy = my_kernels:Cauchy\nlorentz = gone:Lorentz\n")
    monkeypatch.syspath_prepend(own_kernel)
    monkeypatch.syspath_prepend(tmp_path / "site")


def test_every_installed_component_becomes_a_word_and_a_faulty_one_is_reported(package):
    (fault,) = add_installed(())
    assert str(fault).startswith("tails 1.2 lacks the module `gone`, which it names for kernel `lorentz`")
    assert "cauchy" in KERNELS and KERNELS.definition("cauchy").option_names == ("bandwidth",)
    (explained,) = explain("cauchy")
    assert explained.keys == ("kernel",) and [option.name for option in explained.options] == ["bandwidth"]
    (fault, _) = add_installed(("bandwidth",))
    assert "option `bandwidth` of `cauchy` has the name of a key" in str(fault)
