"""`kdx check` on a real database."""

import json
from pathlib import Path

import pytest
from looked_after import completed, planned, refused, typed


@pytest.fixture(autouse=True)
def folder(tmp_path) -> Path:
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
    assert (
        done.exit_code == 5
        and done.stdout.startswith(f"not compared: {file}:")
        and "there is no table `tiny` in newer; allowed: newer" in done.stdout
    )


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
    assert typed("check", "both.md").stderr.endswith(" numbers of tiny, newer match sweeps tiny, newer\n")
    done = typed("check", "both.md", "tiny")
    assert done.exit_code == 5 and done.stdout.endswith(": there is no table `newer` in tiny; allowed: tiny\n")
    assert typed("check", "both.md", "--table", "tiny").exit_code == 0


INPUTS = (
    "\\input{parts/table}",
    "\\input parts/table",
    "\\include{parts/table.tex}",
    "\\subfile{parts/table}",
    "\\import{parts/}{table}",
    "\\input{parts/section}",
)


@pytest.mark.parametrize("command", INPUTS)
def test_a_paper_is_read_with_what_it_inputs_from_its_folder(folder, command):
    (folder / "parts").mkdir()
    (folder / "parts" / "table.tex").write_text(typed("report", "--format", "latex").stdout.replace("2.500", "2.600"))
    (folder / "parts" / "section.tex").write_text("\\subimport{}{table}")
    (folder / "paper.tex").write_text(f"Hello 5\\% {command}\n% \\input{{old}}\n\\input{{glyphtounicode}}")
    done = typed("check", "paper.tex")
    assert done.stdout.startswith("parts/table.tex:") and "was 2.600, is 2.500" in done.stdout
    assert done.stderr.startswith("paper.tex: ")


def test_what_is_outside_the_folder_of_a_paper_is_not_read(folder):
    (folder / "paper").mkdir()
    (folder / "table.tex").write_text(typed("report", "--format", "latex").stdout)
    (folder / "paper" / "paper.tex").write_text("Hello \\input{../table}\n")
    assert refused("check", "paper/paper.tex").problem == "there is no number of kdx in this file"


def test_what_of_a_paper_is_not_checked_is_said(folder):
    paper = folder / "paper"
    paper.mkdir()
    for place in (folder / "up.tex", paper / "table.tex"):
        place.write_text(typed("report", "--format", "latex").stdout)
    lines = ["\\input{table}", "\\label{fig:x}\\label{tab:others}", "\\input{../up}", "\\input{\\dir/x}\\input{#1}"]
    (paper / "paper.tex").write_text("\n".join(lines))
    done = typed("check", "paper/paper.tex")
    notes = [
        "note: paper/paper.tex:3:1: ../up is not in the folder of the paper, and not checked",
        "note: paper/paper.tex:4:1: \\dir/x is named by a macro, and not checked",
        "note: paper/paper.tex:4:15: #1 is named by a macro, and not checked",
        "note: paper/paper.tex:2:14: no sweep has a table tab:others, so it is not checked",
    ]
    assert (done.exit_code, done.stderr.splitlines()[:-1]) == (0, notes)
    (paper / "paper.tex").write_text("\n".join([*lines, "\\input{gone}% \\label{tab:old}"]))
    done = typed("check", "paper/paper.tex")
    assert (done.exit_code, done.stdout) == (5, "not compared: paper/paper.tex:5:1: gone does not exist\n")
    assert done.stderr.endswith(" compared, none differs, 1 part could not be compared\n")


def test_a_table_of_a_sweep_that_is_not_there_is_not_compared_with_another(folder):
    text = Path("then.md").read_text().replace("kdx report tiny", "kdx report tyni")
    Path("then.md").write_text(text)
    done = typed("check", "then.md")
    why = "then.md:1:1: there is no sweep `tyni`; allowed: tiny"
    assert (done.exit_code, done.stdout) == (5, f"not compared: {why}\n")
    assert done.stderr == "then.md: no number was compared, 1 part could not be compared\n"
    assert typed("check", "then.md", "tiny").exit_code == 0


def test_a_table_that_several_sweeps_have_is_compared_with_the_one_that_is_named(folder):
    for name in ("first", "second"):
        planned(1, name=name, more="\ntables: [{name: main, rows: task}]\n")
    text = typed("report", "first", "--format", "markdown").stdout.partition("\n")[2]
    Path("main.md").write_text(f"{text}\n\nIt is 5 <!-- kdx trace main translation -->")
    several = "several sweeps have a table `main`: second, first"
    done = typed("check", "main.md")
    assert done.exit_code == 5 and done.stdout.splitlines() == [
        f"not compared: main.md:1:1: {several}; say which: kdx check FILE SWEEP",
        f"not compared: main.md:10:7: {several}; add --sweep SWEEP to its comment",
    ]
    assert "several" not in typed("check", "main.md", "first").stdout


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
    assert typed("check", "page.md", "--table", "tiny").exit_code == 0
    Path("page.md").write_text(f"{score['value']:.2f} <!-- {command} --sweep=tiny --db runs.db --full -->")
    assert typed("check", "page.md").exit_code == 0
    Path("page.tex").write_text(f"It is {score['value']:.2f}% {command}\nor \\textbf{{9.9}}% {command} # mean\n")
    wrong = typed("check", "page.tex")
    assert wrong.exit_code == 5
    assert wrong.stdout == f"page.tex:2:12: tiny: {row}, loss ↓: mean: was 9.9, is {score['mean']:.1f}\n"


@pytest.mark.parametrize(
    ("comment", "why"),
    [
        ("kdx trace tiny nothing perplexity", "table `tiny`: there is no row `nothing`"),
        ("kdx trace none exponential perplexity", "there is no table `none` in tiny; allowed: tiny"),
        ("kdx trace tiny exponential --sweep tyni", "there is no sweep `tyni`"),
        ("kdx trace tiny", "`kdx trace tiny` names no place of a table"),
        ("kdx trace tiny exponential perplexity # median", "no figure `median`; allowed: score, mean, sd, n"),
        ('kdx trace tiny "exponential', "names no place of a table"),
        ("kdx trace a b c d", "names no place of a table"),
        ("kdx trace tiny exponential --grid", "names no place of a table"),
    ],
)
def test_a_number_whose_place_is_not_there_is_not_compared(comment, why):
    Path("page.md").write_text(f"2.5 <!-- {comment} -->")
    done = typed("check", "page.md")
    assert done.exit_code == 5 and done.stdout.startswith("not compared: page.md:1:1: ") and why in done.stdout


@pytest.mark.parametrize(
    ("file", "text", "place"),
    [
        ("page.md", "It is 2.5 (PPL) {}", "1:17"),
        ("page.markdown", "2.5 {0} and two {0}", "1:{1}"),
        ("page.md", "It is 2.5\n{}", "2:1"),
        ("page.md", "2.5 {0} {0}", "1:{1}"),
        ("page.tex", "It is 2.5 perplexity{}", "1:21"),
        ("page.tex", "It is 2.5\n{}", "2:1"),
        ("page.tex", "2.5\\%{0}\nor two {0}", "2:8"),
    ],
)
def test_a_comment_without_a_number_directly_before_it_is_not_passed_over(file, text, place):
    command = "kdx trace tiny translation"
    comment = f"% {command}" if file.endswith(".tex") else f"<!-- {command} -->"
    text = text.format(comment)
    Path(file).write_text(text)
    place = place.format("", text.rindex(comment) + 1)
    done = typed("check", file)
    why = f"`{command}` has no number directly before it; put it directly behind its number"
    assert (done.exit_code, done.stdout) == (5, f"not compared: {file}:{place}: {why}\n")


def test_only_what_differs_is_said_to_be_made_again(folder):
    planned(1, name="newer")
    newer = typed("report", "newer", "--format", "markdown").stdout
    Path("both.md").write_text(Path("then.md").read_text().replace("2.500", "2.600") + newer)
    done = typed("check", "both.md")
    assert done.stdout == "both.md:6:17: tiny: translation, loss ↓: was 2.600, is 2.500\n"
    assert done.stderr.endswith(" compared, 1 differs; as they are now: kdx report tiny\n")


def test_a_file_without_a_number_is_said_and_another_kind_of_file_refused(folder):
    Path("none.md").write_text("no table here")
    done = typed("check", "then.md", "none.md")
    assert done.exit_code == 0 and "note: there is no number of kdx in none.md\n" in done.stderr
    Path("table.latex").write_text("")
    fault = refused("check", "then.md", "table.latex")
    assert (fault.place, fault.allowed) == ("table.latex", ".json, .md, .markdown, .tex")


def test_several_files_are_checked_at_once(folder):
    planned(1, name="newer")
    Path("newer.md").write_text(typed("report", "newer", "--format", "markdown").stdout)
    Path("none.md").write_text("no table here")
    done = typed("check", "then.md", "none.md", "newer.md", "then.json")
    assert done.exit_code == 0 and done.stderr.endswith(" match sweeps tiny, newer\n")
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
    assert done.stderr.endswith(" numbers of newer, tiny match sweeps newer, tiny\n")
    Path("days.yaml").write_text("tables:\n- {name: days, rows: kernel, columns: sweep}\n")
    arguments = ("newer", "tiny", "--tables", "days.yaml")
    Path("days.md").write_text(typed("report", *arguments, "--format", "markdown").stdout)
    assert typed("check", "days.md").exit_code == 0
    completed(next(run for run in planned(3) if run.seed == 1), 2.25)
    done = typed("check", "days.md")
    assert done.exit_code == 5
    assert done.stderr.endswith("as they are now: kdx report newer tiny --tables days.yaml\n")
