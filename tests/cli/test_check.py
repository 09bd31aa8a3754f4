"""`kdx check` on a real database."""

import json
from pathlib import Path

import pytest
from looked_after import completed, planned, refused, typed


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    runs = planned(3)
    completed(runs[0], 2.5)
    Path("then.json").write_text(typed("report", "--json").stdout)
    Path("then.md").write_text(typed("report", "--format", "markdown").stdout)
    return tmp_path


@pytest.mark.parametrize("file", ["then.json", "then.md"])
def test_numbers_that_match_are_exit_code_0_and_others_5(file, folder):
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = typed("check", file)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.endswith(" numbers of tiny match sweep tiny\n")
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before

    other = next(run for run in planned(3) if run.seed == 1)
    completed(other, 2.25)
    done = typed("check", file)
    assert done.exit_code == 5
    changed = [line for line in done.stdout.splitlines() if "was 2.5" in line and "is 2.25" in line]
    assert changed[0].startswith(f"{file}:") and ": tiny: " in changed[0]
    assert done.stderr.endswith(" differ; as they are now: kdx report tiny\n")
    shown = json.loads(typed("check", file, "--json").stdout)
    assert (shown["files"], shown["tables"]) == ([file], ["tiny"])
    assert len(shown["differences"]) == len(done.stdout.splitlines())


@pytest.mark.parametrize("file", ["then.json", "then.md"])
def test_a_table_is_compared_with_the_sweep_that_made_it(file):
    planned(1, name="newer")
    assert typed("check", file).stderr.endswith(" numbers of tiny match sweep tiny\n")
    assert typed("check", file, "tiny").exit_code == 0
    done = typed("check", file, "newer")
    assert (done.exit_code, done.stdout) == (5, "not compared: tiny\n")


def test_a_table_without_its_comment_is_found_by_its_title():
    text = Path("then.md").read_text()
    Path("then.md").write_text(text.partition("\n")[2])
    assert typed("check", "then.md").stderr.endswith(" numbers of tiny match sweep tiny\n")
    Path("then.md").write_text(text.partition("\n")[2].replace("**tiny**", "Table 1"))
    assert refused("check", "then.md").problem == "there is no number of kdx in this file"


def test_each_table_of_a_text_is_compared_with_the_sweep_that_has_it():
    planned(1, name="newer")
    newer = typed("report", "newer", "--format", "markdown").stdout
    then = Path("then.md").read_text()
    assert typed("check", "then.md").stderr.endswith(" match sweep tiny\n")
    Path("both.md").write_text(then + newer)
    assert typed("check", "both.md").stderr.endswith(" numbers of tiny, newer match sweep tiny, newer\n")
    done = typed("check", "both.md", "tiny")
    assert (done.exit_code, done.stdout) == (5, "not compared: newer\n")
    assert typed("check", "both.md", "--table", "tiny").exit_code == 0


def test_a_paper_is_read_with_what_it_inputs_from_its_folder(folder):
    (folder / "parts").mkdir()
    (folder / "parts" / "table.tex").write_text(typed("report", "--format", "latex").stdout)
    paper = folder / "paper.tex"
    paper.write_text("Hello 5\\% \\input{parts/none}\\input{parts/table}\n% \\input{old}\n")
    assert typed("check", "paper.tex").stderr.endswith(" numbers of tiny match sweep tiny\n")
    paper.write_text("Hello \\input{../table}\n")
    assert refused("check", "paper.tex").problem == "there is no number of kdx in this file"


def test_what_of_a_paper_is_not_checked_is_said(folder):
    (folder / "table.tex").write_text(typed("report", "--format", "latex").stdout)
    lines = ["\\input{table}", "\\input{gone}% \\label{tab:old}", "\\label{fig:x}\\label{tab:others}", "\\input{../up}"]
    (folder / "paper.tex").write_text("\n".join(lines))
    done = typed("check", "paper.tex")
    assert done.exit_code == 0 and done.stderr.splitlines()[:-1] == [
        "note: paper.tex:2: gone is not in the folder of the paper, and not checked",
        "note: paper.tex:4: ../up is not in the folder of the paper, and not checked",
        "note: paper.tex:3: no sweep has a table tab:others, so it is not checked",
    ]


def test_a_number_in_prose_is_compared_where_it_says_its_place(folder):
    score = json.loads(typed("report", "--json").stdout)["tables"][0]["cells"][0]
    row = " / ".join(score["row"].values())
    command = f"kdx trace tiny '{row}'"
    page = (
        f"It is {score['value']:.2f} <!-- {command} --> or **{score['mean']:.1f}** <!-- {command} # mean -->"
        f" of {score['n']} <!-- {command} # n --> seeds, not 7."
    )
    Path("page.md").write_text(page)
    done = typed("check", "page.md")
    assert (done.stdout, done.exit_code, done.stderr) == ("", 0, "page.md: 3 numbers of tiny match sweep tiny\n")
    Path("page.tex").write_text(f"It is {score['value']:.2f}% {command}\nor \\textbf{{9.9}}% {command} # mean\n")
    wrong = typed("check", "page.tex")
    assert wrong.exit_code == 5
    assert wrong.stdout == f"page.tex:2:12: tiny: mean was 9.9, is {score['mean']:.1f}\n"


@pytest.mark.parametrize(
    ("comment", "why"),
    [
        ("kdx trace tiny nothing perplexity", "table `tiny`: there is no row `nothing`"),
        ("kdx trace none exponential perplexity", "there is no table `none`"),
        ("kdx trace tiny", "`kdx trace tiny` names no place of a table"),
        ("kdx trace tiny exponential perplexity # median", "names no place of a table"),
        ('kdx trace tiny "exponential', "names no place of a table"),
        ("kdx trace a b c d", "names no place of a table"),
    ],
)
def test_a_number_whose_place_is_not_there_is_not_compared(comment, why):
    Path("page.md").write_text(f"2.5 <!-- {comment} -->")
    done = typed("check", "page.md")
    assert done.exit_code == 5 and done.stdout.startswith("not compared: page.md:1:1: ") and why in done.stdout


def test_several_files_are_checked_at_once(folder):
    planned(1, name="newer")
    Path("newer.md").write_text(typed("report", "newer", "--format", "markdown").stdout)
    Path("none.md").write_text("no table here")
    done = typed("check", "then.md", "none.md", "newer.md", "then.json")
    assert done.exit_code == 0 and done.stderr.endswith(" match sweep tiny, newer\n")
    assert json.loads(typed("check", "then.md", "newer.md", "--json").stdout)["files"] == ["then.md", "newer.md"]
    assert refused("check", "none.md", "none.md").problem == "there is no number of kdx in these files"
    assert refused("check", "tiny").problem == "there is no file to check"


@pytest.mark.parametrize("written", [["then.json", "--json"], ["then.md", "--format", "markdown"]])
def test_a_check_asks_for_what_the_file_shows(written):
    file, *form = written
    Path(file).write_text(typed("report", *form, "--against", "tsai2019").stdout)
    assert typed("check", file).exit_code == 0


def test_what_cannot_be_compared_is_refused():
    assert refused("check", "absent.json").exit_code == 2
    assert refused("check", "then.json", "--db", "absent.db").exit_code == 3
    assert refused("check").exit_code == 2
    assert refused("check", "then.md", "runs.db").hint == "name it with --db runs.db"


def test_one_table_may_be_compared_alone():
    assert typed("check", "then.json", "--table", "tiny").exit_code == 0
    assert refused("check", "then.json", "--table", "other").problem == "there is no table `other`"


def test_a_report_of_several_sweeps_is_compared_with_all_of_them(folder):
    planned(1, name="newer")
    Path("both.json").write_text(typed("report", "newer", "tiny", "--json").stdout)
    done = typed("check", "both.json")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.endswith(" numbers of newer, tiny match sweep newer, tiny\n")
    Path("days.yaml").write_text("tables:\n- {name: days, rows: kernel, columns: sweep}\n")
    arguments = ("newer", "tiny", "--tables", "days.yaml")
    Path("days.md").write_text(typed("report", *arguments, "--format", "markdown").stdout)
    assert typed("check", "days.md").exit_code == 0
    completed(next(run for run in planned(3) if run.seed == 1), 2.25)
    done = typed("check", "days.md")
    assert done.exit_code == 5
    assert done.stderr.endswith("as they are now: kdx report newer tiny --tables days.yaml\n")
