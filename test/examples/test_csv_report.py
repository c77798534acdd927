"""The parts of examples/csv-report by themselves: from bytes to rows, what cells mean, what columns remember."""

import csv
import io
import random
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/csv-report/payloads/tables"))

import charts  # noqa: E402
import column  # noqa: E402
import source  # noqa: E402
import values  # noqa: E402


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="troupe-csv-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def look(self, data):
        path = self.folder / "t.csv"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return source.look(path)

    def rows(self, data):
        self.read = source.Rows(self.look(data))
        return list(self.read)


class Reading(InFolder):
    def test_the_encoding_is_found(self):
        text = "näme;wert\nä;1\n"
        for data, encoding, guessed in (
            (text.encode(), "utf-8", False),
            (text.encode("utf-8-sig"), "utf-8-sig", False),
            (text.encode("cp1252"), "cp1252", True),
            (text.encode("utf-16"), "utf-16", False),
            ("name;value\nabc;1\n".encode("utf-16-le"), "utf-16-le", True),
        ):
            looked = self.look(data)
            self.assertEqual((looked.encoding, looked.guessed), (encoding, guessed))
        self.assertEqual(self.rows(text.encode("cp1252"))[1], ["ä", "1"])
        self.assertEqual(self.rows(text.encode("utf-8-sig"))[0], ["näme", "wert"])

    def test_the_delimiter_is_the_one_by_which_rows_are_even(self):
        for text, delimiter in (
            ("a,b\n1,2\n", ","),
            ('a;b\n"1,5";2\n"2,5";3\n', ";"),
            ("a\tb\n1,1\t2\n", "\t"),
            ("a|b|c\n1|2|3\n", "|"),
            ("one\ntwo\n", ","),
            ("sep=;\na;b\n", ";"),
        ):
            self.assertEqual(self.look(text).delimiter, delimiter, text)

    def test_rows_come_back_as_they_were_written_whatever_is_in_the_cells(self):
        chance = random.Random(5)
        for _ in range(200):
            delimiter, end = chance.choice(",;\t|"), chance.choice(["\n", "\r\n"])
            width = chance.randint(2, 5)
            cell = lambda: "".join(chance.choice('ab1 é"\n\'' + delimiter) for _ in range(chance.randint(1, 6)))  # noqa: E731
            table = [[cell() for _ in range(width)] for _ in range(chance.randint(1, 20))]
            text = io.StringIO()
            csv.writer(text, delimiter=delimiter, lineterminator=end).writerows(table)
            path = self.folder / "t.csv"
            path.write_bytes(text.getvalue().encode())
            self.assertEqual(list(source.Rows(source.look(path, delimiter))), table)

    def test_lines_are_counted_over_quoted_line_ends(self):
        path = self.look('sep=,\na,b\n"1\n2",x\ny,z\n').path
        rows = source.Rows(source.look(path))
        self.assertEqual([rows.line for _ in rows], [2, 4, 5])

    def test_what_never_ends_is_stopped_and_said(self):
        for data in ('a,b\n1,"open\n' + "x,y\n" * 400_000, "x" * 9_000_000, 'a\n' + '"x\n",' * 4_000_000):
            self.rows(data)
            self.assertIsNotNone(self.read.stopped)

    def test_what_is_no_text_is_refused(self):
        for data in (b"\0" * 1000, b"PK\x03\x04" + b"x" * 100):
            self.assertRaises(source.Unreadable, self.look, data)

    def test_a_few_nul_bytes_are_left_out_and_counted(self):
        self.assertEqual(self.rows(b"a,b\n1,\x002\n"), [["a", "b"], ["1", "2"]])
        self.assertEqual(self.read.source.nul_bytes, 1)


class Meaning(unittest.TestCase):
    def test_numbers(self):
        for text, number in (("1", 1), ("-1.5", -1.5), ("1,234.5", 1234.5), ("$ 12", 12), ("5 %", 5), ("1e3", 1000), (".5", 0.5)):
            self.assertEqual(values.number_with_point(text), number, text)
        for text in ("007", "1_000", "inf", "nan", "1e999", "1.2.3", "12a", "", "0x10", "٣"):
            self.assertIsNone(values.number_with_point(text), text)
        self.assertEqual(values.number_with_comma("1.234,5"), 1234.5)

    def test_dates(self):
        self.assertEqual(values.date_year_first("2024-02-29T10:00:00Z"), values.date_day_first("29.02.2024"))
        for text in ("2023-02-29", "2024-13-01", "0000-01-01", "2024-1", "12345-01-01"):
            self.assertIsNone(values.date_year_first(text), text)

    def test_a_column_is_read_in_the_way_that_fits_most_of_it(self):
        way = lambda cells, delimiter=",": values.way_of(cells, delimiter)[:2]  # noqa: E731
        self.assertEqual(way(["13/01/2024", "01/02/2024"]), ("date", values.date_day_first))
        self.assertEqual(way(["01/13/2024", "01/02/2024"]), ("date", values.date_month_first))
        self.assertEqual(way(["1,5", "2,25"], ";"), ("number", values.number_with_comma))
        self.assertEqual(way(["1,500", "2,250"]), ("number", values.number_with_point))
        self.assertEqual(way(["1", "2", "3", "4", "x"])[0], "number")
        self.assertEqual(way(["1", "x"])[0], "text")
        self.assertTrue(values.way_of(["01/02/2024", "03/04/2024"], ",")[2], "days and months cannot be told apart")


class Remembering(unittest.TestCase):
    def test_numbers_are_summed_up_as_the_textbook_says(self):
        chance = random.Random(1)
        numbers = [chance.gauss(10, 3) for _ in range(5_000)]
        one = column.Numbers(10_000, "x")
        for number in numbers:
            one.add(number)
        mean = sum(numbers) / len(numbers)
        told = one.summary()
        self.assertAlmostEqual(told["mean"], mean)
        self.assertAlmostEqual(told["deviation"] ** 2, sum((n - mean) ** 2 for n in numbers) / len(numbers))
        self.assertEqual((told["least"], told["most"]), (min(numbers), max(numbers)))
        self.assertEqual(sum(count for *_, count in told["bins"]), len(numbers))

    def test_extreme_numbers_make_no_bad_charts(self):
        for numbers in ([5e-324, 0.0], [1e100, -1e100], [1e18, 1e18 + 256], [0.1] * 3, [1.0, 2.0], [0, 1e-9, 1e9]):
            one = column.Numbers(100, "x")
            for number in numbers:
                one.add(float(number))
            told = one.summary()
            self.assertLessEqual(len(told["bins"]), 40, numbers)
            self.assertEqual(sum(count for *_, count in told["bins"]), len(numbers))
            self.assertNotRegex(charts.histogram(1, "x", told["bins"]), "nan|inf")

    def test_days_stay_few_however_many_there_are_and_no_row_is_lost(self):
        for span in (1, 30, 300, 3_000, 30_000, 300_000):
            days = column.Days()
            for i in range(9_000):
                days.add(730_000 + i * span // 9_000, [1.0, None])
            told = days.summary()
            self.assertLessEqual(len(days.buckets), column.BUCKETS_MAX)
            self.assertLessEqual(len(told["points"]), 1_200)
            self.assertEqual(sum(rows for _, rows, *_ in told["points"]), 9_000, span)
            self.assertAlmostEqual(sum(point[2] for point in told["points"]), 9_000)

    def test_a_column_of_a_wide_table_remembers_less(self):
        narrow, wide = (column.Column("x", "text", None, width) for width in (5, 1_000))
        for i in range(5_000):
            narrow.add(f"v{i}", i)
            wide.add(f"v{i}", i)
        self.assertEqual((len(narrow.different), len(wide.different)), (1_000, 50))
        self.assertTrue(narrow.summary()["more_different"])


class Drawing(unittest.TestCase):
    def test_labels_cannot_leave_the_drawing(self):
        hostile = '</title><script>alert(1)</script>"&'
        for drawn in (
            charts.bars(1, hostile, [(hostile, 1), ("b", 0)]),
            charts.line(2, hostile, [(hostile, 1.0), ("b", -2.0)]),
            charts.line(3, hostile, [(hostile, 0.0)]),
        ):
            self.assertNotIn("<script", drawn)
            self.assertEqual(drawn.count("<title"), drawn.count("</title>"))

    def test_amounts_are_written_for_people(self):
        told = [charts.amount(n) for n in (0, 12, 1234, 12.345, 0.12345, 1_250_000, -3e9, 1e20, 1e-9)]
        self.assertEqual(told, ["0", "12", "1,234", "12.35", "0.1235", "1.25 million", "-3 billion", "1e+20", "1e-09"])


if __name__ == "__main__":
    unittest.main()
