"""The pictures of the documentation show what stands beside them."""

import pytest

from tests import picture


@pytest.mark.parametrize("theme", picture.THEMES)
def test_the_picture_is_of_the_grid_and_table_below_it(theme):
    assert picture.file(theme).read_text(encoding="utf-8") == picture.picture(theme), "make picture"


def test_pictures_of_findings_are_of_the_example():
    for path, drawn in picture.findings():
        assert path.read_text(encoding="utf-8") == drawn, "make picture"


def test_the_picture_loads_nothing_from_elsewhere():
    for theme in picture.THEMES:
        assert "@font-face" not in picture.picture(theme) and "url(http" not in picture.picture(theme)
