"""What lies around the package for those who change it or report something: it agrees with the package."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from kdx.cli.app import Kdx

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOW = GITHUB / "workflows" / "test.yml"
FORMS = sorted(set((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) - {GITHUB / "ISSUE_TEMPLATE" / "config.yml"})
MAKEFILE = (ROOT / "Makefile").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def pythons() -> list[str]:
    """The versions of Python that kdx says it supports."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))


def test_the_workflow_tests_the_first_and_the_last_python():
    job = yaml.safe_load(WORKFLOW.read_text())["jobs"]["test"]
    assert job["strategy"]["matrix"]["python"] == [pythons()[0], pythons()[-1]]
    assert f"Python {pythons()[0]} to {pythons()[-1]}" in CONTRIBUTING


def test_the_workflow_may_only_read_and_runs_what_contributors_run():
    workflow = yaml.safe_load(WORKFLOW.read_text())
    steps = workflow["jobs"]["test"]["steps"]
    assert workflow["permissions"] == {"contents": "read"}
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    assert [step["run"].split()[-2:] for step in steps if "run" in step] == [["make", "lint"], ["make", "test"]]


def test_every_target_of_make_that_is_named_exists():
    texts = (WORKFLOW.read_text(), CONTRIBUTING, (ROOT / ".ci" / "run").read_text())
    named = {target for text in texts for target in re.findall(r"(?:`|: |CI |^)make ([\w-]+)", text, re.MULTILINE)}
    assert len(named) > 5
    assert named <= set(re.findall(r"^([\w-]+):.*## ", MAKEFILE, re.MULTILINE))


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_an_issue_form_is_one_that_github_shows(file):
    form = yaml.safe_load(file.read_text())
    assert form["name"] and form["description"]
    assert len({field["id"] for field in form["body"]}) == len(form["body"])
    for field in form["body"]:
        assert field.keys() <= {"type", "id", "attributes", "validations"}
        more = {"input": {"placeholder"}, "textarea": {"render"}}[field["type"]]
        assert {"label"} <= field["attributes"].keys() <= {"label", "description", *more}
    assert any(field.get("validations") == {"required": True} for field in form["body"])


def fields(name: str) -> dict[str, Any]:
    """Id → attributes of the fields of a form."""
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml").read_text())
    return {field["id"]: field["attributes"] for field in form["body"]}


def test_the_forms_ask_for_the_output_of_commands_that_exist():
    assert "`kdx doctor`" in fields("bug")["doctor"]["description"]
    assert "`kdx trace " in fields("wrong-number")["trace"]["description"]
    named = {verb for file in FORMS for verb in re.findall(r"`kdx ([a-z]+)", file.read_text())}
    assert named and named <= Kdx.verbs.keys()


def test_a_commit_is_checked_by_the_tools_of_make_lint():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    lint = MAKEFILE.partition("\nlint: ")[2].partition("\n\n")[0]
    tools = set(re.findall(r"^\t\$\(BIN\)/(ruff \w+|\w+)", lint, re.MULTILINE))
    assert {hook["entry"] for hook in repository["hooks"]} == {f".venv/bin/{tool}" for tool in tools}
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}


def test_the_image_has_a_python_that_is_tested_and_never_runs_as_root():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    (base,) = (line for line in lines if line.startswith("FROM "))
    assert base in {f"FROM python:{version}-slim" for version in pythons()}
    assert lines.index("USER 1000") < lines.index('ENTRYPOINT ["kdx"]')


def test_contributing_maps_every_package_and_names_files_that_exist():
    packages = {file.parent.name for file in (ROOT / "kdx").glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)` \|", CONTRIBUTING, re.MULTILINE)) == packages
    named = re.findall(r"`((?:kdx|tests|experiments|docs|\.ci)/[\w/.]*)`", CONTRIBUTING.replace("/NAME.py", "/"))
    assert len(named) > 8
    assert [name for name in named if not (ROOT / name).exists()] == []
