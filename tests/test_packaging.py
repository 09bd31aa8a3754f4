"""What `pip install` gives works without the checkout."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from waiting import GIVE_UP

from kdx.api import runs
from kdx.version import VERSION

ROOT = Path(__file__).parents[1]


def build(folder: Path, source: Path, *options: str) -> None:
    command = [sys.executable, "-m", "build", *options, "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)


def files_of(wheel_folder: Path) -> set[str]:
    """What the wheel in a folder holds."""
    (wheel,) = wheel_folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    build(folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def installed(built) -> Path:
    """The wheel, unpacked as an installer would."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(built / "site")
    return built / "site"


def kdx(installed: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed), "KDX_DATA": str(cwd / "data")}
    command = [sys.executable, "-m", "kdx", *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


def test_the_wheel_holds_every_shipped_grid(installed):
    shipped = {path.relative_to(ROOT / "experiments") for path in (ROOT / "experiments").rglob("*.yaml")}
    folder = installed / "kdx" / "experiments"
    assert shipped and {path.relative_to(folder) for path in folder.rglob("*.yaml")} == shipped


def test_grids_are_found_by_name_and_copied_out(installed, tmp_path):
    planned = kdx(installed, tmp_path, "plan", "quickstart", "--all")
    assert planned.returncode == 0 and planned.stdout.count("start ") == 36
    copied = kdx(installed, tmp_path, "init", "mine", "--grid", "quickstart")
    assert copied.returncode == 0, copied.stderr
    assert (tmp_path / "mine" / "quickstart.yaml").read_bytes() == (ROOT / "experiments/quickstart.yaml").read_bytes()


def test_the_wheel_holds_the_package_alone_and_its_types(built):
    files = files_of(built)
    assert {file.partition("/")[0] for file in files} == {"kdx", f"kdx-{VERSION}.dist-info"}
    assert "kdx/py.typed" in files


def test_the_sdist_is_the_repository(built):
    """So its tests and documents work from it, too."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    listed = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    repository = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.splitlines()
    with tarfile.open(built / f"kdx-{VERSION}.tar.gz") as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert held == {*repository, "PKG-INFO"}


def test_an_image_is_built_from_what_the_wheel_needs(built, tmp_path):
    for name in re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    build(tmp_path / "dist", tmp_path, "--wheel")
    assert files_of(tmp_path / "dist") == files_of(built)


def citation() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_all_name_one_version_and_its_date(installed):
    version, date = re.findall(r"^## \[(.+)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert (citation()["version"], citation()["date-released"]) == (version, date)
    assert PathDistribution(installed / f"kdx-{VERSION}.dist-info").version == VERSION == version
    assert set(re.findall(r"\bv(\d+\.\d+\.\d+)", (ROOT / "docs/do/trace-a-number.md").read_text())) == {VERSION}


def test_an_index_shows_what_the_readme_and_the_citation_say(installed):
    about = PathDistribution(installed / f"kdx-{VERSION}.dist-info").metadata
    assert about["Summary"] == (ROOT / "README.md").read_text().splitlines()[2]
    papers = {url.partition(", ")[2] for url in about.get_all("Project-URL")}
    assert papers == {f"https://doi.org/{reference['doi']}" for reference in citation()["references"]}


@pytest.mark.slow
def test_an_installed_kdx_makes_its_database_and_reports_it(installed, tmp_path):
    grid = tmp_path / "one.yaml"
    grid.write_text(
        "task: prediction\ndata: {corpus: synthetic-language, train_lines: 300}\n"
        "model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}\n"
        "training: {steps: 40, batch_tokens: 512, length: 32, warmup: 5, learning_rate: 1e-2}\n"
    )
    swept = kdx(installed, tmp_path, "sweep", "one.yaml")
    assert swept.returncode == 0, swept.stderr
    reported = kdx(installed, tmp_path, "report", "--json")
    assert reported.returncode == 0 and '"sweep": "one"' in reported.stdout
    page = kdx(installed, tmp_path, "report", "--format", "html")
    assert page.returncode == 0 and page.stdout.startswith("<!doctype html>"), page.stderr


def test_the_constraints_pin_everything_that_is_needed_and_torch_for_a_cpu():
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in constraints()}
    project = (ROOT / "pyproject.toml").read_text()
    needed = [line.strip(' ",') for line in project.partition("dependencies = [")[2].partition("]\n")[0].splitlines()]
    names = {line.split(">")[0].split("=")[0].lower() for line in needed if line and not line.startswith("#")}
    assert "torch==2.13.0" in constraints()
    assert names <= pinned, names - pinned


def reading_lines() -> list[list[str]]:
    """The two lines of the documentation that install kdx without torch."""
    page = (ROOT / "docs/do/read-results-without-torch.md").read_text()
    return [line.split() for line in page.splitlines() if line.startswith("pip install --no-compile")]


def test_the_lines_without_torch_name_what_kdx_needs_but_for_training():
    first, second = reading_lines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=]", line)[0] for line in project["dependencies"]}
    training = {"torch", "pytorch-lightning", "lion-pytorch", "cmaes", "tokenizers", "sacrebleu", "sacremoses"}
    assert first[3:] == ["--no-deps", "."] and second[3:5] == ["-c", "constraints.txt"]
    assert set(second[5:]) == needed - training


def test_the_action_installs_what_the_documentation_says_and_checks():
    action = yaml.safe_load((ROOT / ".github/actions/check/action.yml").read_text())
    _, install, check = action["runs"]["steps"]
    clone, *lines = install["run"].splitlines()
    assert clone == 'kdx="$GITHUB_ACTION_PATH/../../.."'
    in_clone = [line.replace('"$kdx/constraints.txt"', "constraints.txt").replace('"$kdx"', ".") for line in lines]
    assert [line.split() for line in in_clone] == reading_lines()
    assert check["run"] == 'kdx check $FILES --db "$DB"' and set(check["env"]) == {"FILES", "DB"}
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "kdx check" and re.search(hook["files"], "sections/results.tex")


READS = [
    ["report"],
    ["report", "--format", "html"],
    ["report", "--format", "latex", "--statistics"],
    ["claims", "tsai2019"],
    ["status"],
    ["plan", "quickstart"],
    ["show", "1"],
    ["show", "1", "--curves", "valid/loss"],
    ["diff", "1", "2"],
    ["query", "SELECT count(*) FROM run"],
    ["export", "--to", "exported"],
    ["explain", "rbf"],
    ["db", "check"],
    ["doctor"],
    ["trace", "table1", "Vaswani et al. (2017), Eq. 4", "translation"],
]
"""Commands for an environment without torch, on the example."""


@pytest.mark.slow
def test_an_environment_without_torch_reads_and_says_what_training_lacks(tmp_path, figure):
    build(tmp_path, ROOT, "--wheel")
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    for words in reading_lines():
        words = [str(wheel) if word == "." else word for word in words[1:]]
        subprocess.run([tmp_path / "venv/bin/pip", *words, "--quiet"], cwd=ROOT, check=True, capture_output=True)
    shutil.copy(ROOT / "runs.db.example", tmp_path / "runs.db")

    def kdx_there(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COLUMNS": "100"}
        command = [tmp_path / "venv/bin/kdx", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    for words in READS:
        done = kdx_there(*words)
        assert done.returncode == 0, (words, done.stderr)
    log = tmp_path / "runs.files" / f"{runs(database=ROOT / 'runs.db.example')[0].cell}-0-0" / "log.txt"
    log.parent.mkdir(parents=True)
    log.write_text("step 1\n")
    assert kdx_there("logs", "1").stdout == "step 1\n"
    (tmp_path / "paper.md").write_text(kdx_there("report", "--format", "markdown").stdout)
    action = {
        "cwd": tmp_path,
        "env": {"PATH": f"{tmp_path / 'venv/bin'}:{os.environ['PATH']}", "FILES": "paper.md", "DB": "runs.db"},
    }
    check = yaml.safe_load((ROOT / ".github/actions/check/action.yml").read_text())["runs"]["steps"][-1]["run"]
    assert subprocess.run(check, shell=True, **action).returncode == 0
    page = (tmp_path / "paper.md").read_text()
    (tmp_path / "paper.md").write_text(re.sub(r"\d\d\.\d\d", "12.34", page, count=1))
    assert subprocess.run(check, shell=True, **action).returncode == 5
    for words in (["sweep", "quickstart"], ["verify"], ["plan", "quickstart", "--probe", "--db", "new.db"]):
        done = kdx_there(*words)
        assert "pip install -c constraints.txt ." in done.stderr and "Traceback" not in done.stderr, (
            words,
            done.stderr,
        )
        assert done.returncode == 2
    served = subprocess.Popen(
        [tmp_path / "venv/bin/kdx", "serve", "--port", "0"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    address = re.search(r"http://\S+:\d+", served.stderr.readline())[0]
    with urlopen(f"{address}/") as page:
        assert b"tsai2019/table1-mini" in page.read()
    served.send_signal(signal.SIGINT)
    served.communicate(timeout=GIVE_UP)
    assert not (tmp_path / "runs.db.example").exists()
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    skipped = {"pip", "setuptools", "pkg_resources", "_distutils_hack"}
    files = (file for file in site.rglob("*") if file.is_file() and file.relative_to(site).parts[0] not in skipped)
    size = sum(file.stat().st_size for file in files) / 1e6
    assert size < 400
    figure(f"{size:.0f} MB after {len(READS)} commands")


def constraints() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]
