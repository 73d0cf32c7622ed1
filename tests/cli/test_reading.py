"""Tables from files: delimiters, headers, what is a number, and every complaint."""

from __future__ import annotations

import importlib.util
import io
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from symbayes import DataWarning
from symbayes.cli import main
from symbayes.cli.tables import BadTable, first_other, new_rows, numbers, read_table

from .calling import ODD_NAMES, QUICK, complaint, odd_table

ROWS = pd.DataFrame({"a": [1.0, 2.5], "b": [3.0, -4.0]})


def read(path):
    """A table with its numbers as float64, and nan for what is none."""
    return read_table(path).apply(numbers)


def write(folder, text, name="t.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "a,b\n1,3\n2.5,-4\n"),
        ("t.csv", "a;b\n1;3\n2.5;-4\n"),
        ("t.csv", "a;b\n1,0;3\n2,5;-4\n"),
        ("t.txt", "a\tb\n1\t3\n2.5\t-4"),
        ("t.tsv", "a\tb\n1\t3\n2.5\t-4\n"),
        ("t.TAB", "a\tb\n1\t3\n2.5\t-4\n"),
        ("t.csv", "\ufeffa,b\r\n1,3\r\n2.5,-4\r\n"),
        ("t.csv", 'a, "b"\n"1", 3\n\n2.5, -4\n\n'),
    ],
)
def test_the_delimiter_is_found(folder, name, text):
    pd.testing.assert_frame_equal(read(write(folder, text, name)), ROWS)


def test_a_tab_separates_tsv_whatever_its_header_has(folder):
    table = read_table(write(folder, "a,b,c\td\n1\t2\n", "t.tsv"))
    assert list(table) == ["a,b,c", "d"]


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,3\n2.5,-4\n")))
    pd.testing.assert_frame_equal(read("-"), ROWS)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BadTable, match="no standard input"):
        read_table("-")


def test_names_are_what_they_are(folder):
    odd_table().to_csv(folder / "t.csv", index=False)
    table = read_table("t.csv")
    assert list(table) == [*ODD_NAMES, "y"]
    np.testing.assert_allclose(table, odd_table(), rtol=1e-15)


def test_spaces_around_names_do_not_count(folder):
    pd.testing.assert_frame_equal(read(write(folder, " a , b \n1,3\n2.5,-4\n")), ROWS)
    with pytest.raises(BadTable, match="more than one column named 'a'"):
        read_table(write(folder, "a,a \n1,2\n"))


def test_a_first_column_without_a_name_gets_one(folder):
    assert list(read_table(write(folder, ",a\n1,2\n"))) == ["column 1", "a"]
    with pytest.raises(BadTable, match="more than one column named 'column 1'"):
        read_table(write(folder, ",column 1\n1,2\n"))


def test_a_name_may_have_line_breaks_and_delimiters(folder):
    assert list(read_table(write(folder, '"a\nb","c,""d"""\n1,2\n'))) == ["a\nb", 'c,"d"']


def test_what_is_a_number(folder):
    table = read_table(
        write(
            folder,
            "whole,huge,truth,gaps,some,text,empty\n"
            "1,123456789012345678901234567890,True,,1e3,x,\n"
            "2,1,False,2,-inf,1,\n"
            "3,2,,NA,?,2\n",
        )
    )
    read = table.apply(numbers)
    assert set(map(str, read.dtypes)) == {"float64"}
    np.testing.assert_array_equal(read["huge"], [123456789012345678901234567890.0, 1, 2])
    np.testing.assert_array_equal(read["truth"], [1, 0, np.nan])
    np.testing.assert_array_equal(read["gaps"], [np.nan, 2, np.nan])
    assert read["empty"].isna().all()
    assert first_other(table["some"]) == "'?' in row 3"
    assert first_other(table["text"]) == "'x' in row 1"


LARGE = 2**53 + 1
WHOLE = pd.DataFrame(
    {"id": range(LARGE, LARGE + 30), "a": range(30), "y": [2.0 * i for i in range(30)]}
)


def warned(lost):
    return pytest.warns(DataWarning, match=f" has {lost}, which becomes ")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "gap.parquet"])
def test_whole_numbers_that_lose_digits_are_told(folder, name):
    table = WHOLE.astype({"id": "Int64"})
    if name == "gap.parquet":
        table.loc[5, "id"] = None
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
        table.to_parquet(name)
    else:
        table.to_csv(name, index=False)
    if name == "gap.parquet":
        with pytest.raises(BadTable, match="missing values"), warned(LARGE):
            new_rows(read_table(name), name, ["id"])
    else:
        with warned(LARGE):
            new_rows(read_table(name), name, ["id"])


def test_whole_numbers_of_any_length_are_told(folder):
    read = read_table(
        write(folder, "a,b,c\n1,18446744073709551615,x\n1234567890123456789012,2,3\n")
    )
    for name, lost in (("a", 1234567890123456789012), ("b", 2**64 - 1)):
        with warned(lost):
            new_rows(read, "t.csv", [name])


def test_only_columns_in_use_are_told(folder, capsys):
    WHOLE.to_csv("t.csv", index=False)
    says = (
        f"symbayes: warning: column 'id' of t.csv has {LARGE}, which becomes {LARGE - 1}: beyond "
        "2**53, numbers here have only some 16 digits; subtract a constant, or leave it out if it "
        "only identifies rows"
    )
    words = ["fit", "t.csv", "--target", "y", *QUICK, "--quiet", "--out", "m"]
    assert main(words) == 0
    assert capsys.readouterr().err.splitlines() == [says]
    assert main(["predict", "m", "t.csv"]) == 0
    assert says in capsys.readouterr().err
    assert main([*words, "--features", "a"]) == 0
    assert main(["predict", "m", "t.csv"]) == 0
    assert capsys.readouterr().err == ""


def test_commas_are_decimal_only_between_semicolons(folder):
    table = read_table(write(folder, "a;b;c\n1,5;x,y;1.5\n2;;2\n"))
    np.testing.assert_array_equal(numbers(table["a"]), [1.5, 2])
    np.testing.assert_array_equal(numbers(table["c"]), [1.5, 2])
    assert first_other(table["b"]) == "'x,y' in row 1"
    assert first_other(read_table(write(folder, 'a,b\n"1,5",2\n'))["a"]) == "'1,5' in row 1"
    mixed = read_table(write(folder, "a;b\n2.5;1\n1,5;2\n"))
    assert first_other(mixed["a"]) == "'1,5' in row 2"


def test_empty_lines_count_in_a_single_column(folder):
    np.testing.assert_array_equal(read_table(write(folder, "a\n1\n\n3\n"))["a"], [1, np.nan, 3])


def test_a_header_alone_is_a_table_without_rows(folder):
    assert read_table(write(folder, "a,b\n")).shape == (0, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv has no header"),
        ("\n1,2\n", "t.csv has no header"),
        ("1,2.5,-3e4\n1,2,3\n", "t.csv has only numbers, so that there seems to be no header"),
        ("a,b,a\n1,2,3\n", "more than one column named 'a'; rename"),
        ("a,,\n1,2,3\n", "more than one column named ''"),
        (b"a,\xe9\n1,2\n", "t.csv is not text in UTF-8"),
        (b"a,b\n1,2\n3,\xe9\n", "t.csv is not text in UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "t.csv is not text in UTF-8"),
        ("a,b\n1,2,3\n4,5\n", "t.csv has more fields in row 1 than in its header, which has 2"),
        ("a,b\n1,2\n4,5,6\n", "t.csv has 3 fields in row 2 and 2 in its header"),
        ('a,b\n1,"2\n', "cannot be read as a table: .*EOF inside string"),
        ("a" * 200_000, "has a first line that cannot be read as a header: field larger"),
    ],
)
def test_what_cannot_be_read(folder, text, message):
    with pytest.raises(BadTable, match=message):
        read_table(write(folder, text))


def test_what_cannot_be_opened_is_a_line(folder, capsys):
    words = ["--target", "y"]
    assert "nowhere.csv: No such file" in complaint(capsys, ["fit", "nowhere.csv", *words])
    assert "nowhere.parquet: No such file" in complaint(capsys, ["fit", "nowhere.parquet", *words])
    assert "this is a folder, not a file" in complaint(capsys, ["fit", folder, *words])


def test_parquet_without_its_package(folder, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadTable, match="Parquet needs the package pyarrow; install it"):
        read_table(write(folder, "", "t.parquet"))


def test_parquet(folder):
    pytest.importorskip("pyarrow")
    odd = odd_table(3).assign(
        whole=pd.array([1, None, 3], dtype="Int64"),
        truth=[True, False, True],
        price=[Decimal("1.5"), None, Decimal("2")],
        day=pd.to_datetime(["2020-01-01"] * 3),
        city=["Rome", None, "Oslo"],
        lists=[[1], [2], [3]],
    )
    odd.set_index("whole").to_parquet("t.parquet")
    table = read_table("t.parquet")
    pd.testing.assert_frame_equal(table[[*ODD_NAMES, "y"]], odd_table(3))
    np.testing.assert_array_equal(numbers(table["whole"]), [1, np.nan, 3])
    np.testing.assert_array_equal(numbers(table["truth"]), [1, 0, 1])
    np.testing.assert_array_equal(numbers(table["price"]), [1.5, np.nan, 2])
    assert first_other(table["day"]).startswith("'2020-01-01")
    assert first_other(table["city"]) == "'Rome' in row 1"
    assert first_other(table["lists"]) == "'[1]' in row 1"
    with pytest.raises(BadTable, match=r"is damaged or not Parquet .*; create it again"):
        read_table(write(folder, "no", "bad.parquet"))
