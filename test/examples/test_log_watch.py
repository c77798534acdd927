"""The parts of examples/log-watch by themselves: files that rotate, rules over lines, what survives a crash."""

import os
import random
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/log-watch/payloads/watch"))

import ledger  # noqa: E402
import rules  # noqa: E402
import tail  # noqa: E402


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="troupe-tail-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        with open(self.folder / name, "a", encoding="utf-8") as file:
            file.write(text)


class Tailing(InFolder):
    def follow(self, known=None, start_at_end=False):
        self.tail = tail.Tail(self.folder, ["*.log"], known, start_at_end)

    def restart(self):
        """Another process knows nothing but the positions."""
        positions = self.tail.positions()
        for followed in self.tail.files.values():
            os.close(followed.fd)
        self.follow(known=positions)

    def read(self):
        self.tail.look()
        lines = []
        while batches := list(self.tail.new_lines()):
            lines += [line for _, batch in batches for line in batch]
        return lines

    def test_a_line_is_read_once_and_only_when_it_is_whole(self):
        self.follow()
        self.write("a.log", "one\ntw")
        self.assertEqual(self.read(), ["one"])
        self.write("a.log", "o\r\n")
        self.assertEqual(self.read(), ["two"])
        self.assertEqual(self.read(), [])

    def test_what_was_there_at_the_first_start_is_read_only_if_it_is_asked_for(self):
        self.write("a.log", "old\nhalf")
        self.follow(start_at_end=True)
        self.write("a.log", " done\n")
        self.assertEqual(self.read(), ["half done"])
        self.follow()
        self.assertEqual(self.read(), ["old", "half done"])

    def test_a_renamed_file_is_read_to_its_end_and_the_new_one_from_its_beginning(self):
        self.follow()
        self.write("a.log", "1\n")
        self.assertEqual(self.read(), ["1"])
        self.write("a.log", "2\n")
        os.rename(self.folder / "a.log", self.folder / "a.log.1")
        self.write("a.log", "3\n")
        self.assertEqual(sorted(self.read()), ["2", "3"])
        self.write("a.log.1", "late\n")
        self.assertEqual(self.read(), ["late"])

    def test_a_renamed_file_that_still_matches_is_not_read_again(self):
        self.follow()
        self.write("a.log", "1\n")
        self.read()
        os.rename(self.folder / "a.log", self.folder / "a-1.log")
        self.write("a.log", "2\n")
        self.assertEqual(self.read(), ["2"])

    def test_a_file_that_was_renamed_while_nobody_looked_is_found_again(self):
        self.follow()
        self.write("a.log", "1\n")
        self.read()
        self.write("a.log", "2\n")
        os.rename(self.folder / "a.log", self.folder / "a.log.1")
        self.write("a.log", "3\n")
        self.restart()
        self.assertEqual(sorted(self.read()), ["2", "3"])

    def test_a_file_that_was_copied_and_cut_is_read_from_its_beginning_and_its_copy_not_at_all(self):
        self.follow()
        self.write("a.log", "a line of some length\n" * 20)
        self.assertEqual(len(self.read()), 20)
        shutil.copy(self.folder / "a.log", self.folder / "copy.log")
        os.truncate(self.folder / "a.log", 0)
        self.write("a.log", "new\n")
        self.assertEqual(self.read(), ["new"])

    def test_a_file_that_was_written_anew_and_is_longer_than_before_is_noticed(self):
        self.follow()
        self.write("a.log", "before\n")
        self.read()
        (self.folder / "a.log").write_text("something else\nand more\n")
        self.assertEqual(self.read(), ["something else", "and more"])

    def test_a_line_without_an_end_is_cut_and_costs_no_memory(self):
        self.follow()
        self.write("a.log", "x" * 5_000_000)
        lines = self.read()
        self.assertEqual([len(line) for line in lines], [tail.LINE_BYTES_MAX])
        self.restart()
        self.write("a.log", "x\nnext\n")
        self.assertEqual(self.read(), ["next"])

    def test_pipes_folders_and_links_that_leave_the_folder_are_left_alone(self):
        os.mkfifo(self.folder / "pipe.log")
        os.mkdir(self.folder / "folder.log")
        os.symlink("/etc/hostname", self.folder / "link.log")
        self.follow()
        self.assertEqual(self.read(), [])
        self.assertEqual(self.tail.positions(), {})

    def test_whatever_happens_to_the_files_every_line_is_read_once(self):
        for seed in range(60):
            chance = random.Random(seed)
            for path in self.folder.iterdir():
                path.unlink()
            self.follow()
            written, read, moved = [], [], 0
            for _ in range(60):
                action = chance.choice(["write"] * 5 + ["read"] * 3 + ["rename", "restart", "cut"])
                name = chance.choice(["a.log", "b.log"])
                if action == "write":
                    # Lines of their own: two files are told apart by what is in them.
                    lines = [f"{seed} {len(written) + i} {chance.random()}" for i in range(chance.randint(1, 4))]
                    written += lines
                    self.write(name, "".join(f"{line}\n" for line in lines))
                elif action == "read":
                    read += self.read()
                elif action == "restart":
                    self.restart()
                elif (self.folder / name).exists():
                    # A file must have been seen before its name goes to another one.
                    read += self.read()
                    moved += 1
                    if action == "rename":
                        os.rename(self.folder / name, self.folder / chance.choice([f"old-{moved}.log", f"old.{moved}"]))
                    else:
                        shutil.copy(self.folder / name, self.folder / f"copy-{moved}.gz")
                        os.truncate(self.folder / name, 0)
            read += self.read()
            self.assertEqual(sorted(read), sorted(written), f"seed {seed}")
            for followed in self.tail.files.values():
                os.close(followed.fd)


class RulesOverLines(unittest.TestCase):
    def setUp(self):
        self.known = set()
        self.settings = {
            "error_pattern": "ERROR",
            "burst": {"errors": 3, "seconds": 10},
            "silence_seconds": 60,
            "patterns": [{"name": "disk", "pattern": "no space"}],
        }
        self.rules = self.made({})

    def made(self, state):
        def is_new(signature):
            return signature not in self.known and not self.known.add(signature)

        return rules.Rules(self.settings, state, is_new)

    def kinds(self, *steps):
        """Steps are (time, line), or a time at which nothing comes."""
        for step in steps:
            if isinstance(step, tuple):
                self.rules.line("a.log", step[1], step[0])
            self.rules.pause(step[0] if isinstance(step, tuple) else step)
        return [one["kind"] for one in self.rules.take()]

    def test_an_error_is_new_once_whatever_numbers_and_names_are_in_it(self):
        kinds = self.kinds((0, "ERROR order 17 of 'ada' failed"), (20, "ERROR order 4711 of 'bo' failed"), (40, "ERROR other"))
        self.assertEqual(kinds, ["new_error", "new_error"])

    def test_a_burst_is_raised_once_and_again_after_it_was_over(self):
        lines = [(i, f"ERROR {i}") for i in range(6)]
        self.assertEqual(self.kinds(*lines), ["new_error", "error_burst"])
        self.assertEqual(self.kinds(30, *[(31 + i, "ERROR 1") for i in range(3)]), ["error_burst"])

    def test_silence_is_raised_once_and_its_end_too(self):
        self.assertEqual(self.kinds((0, "fine"), 59, 60, 61, 500), ["silence"])
        self.assertEqual(self.kinds((501, "fine")), ["heard_again"])

    def test_a_pattern_that_goes_on_is_raised_once_a_minute_with_its_count(self):
        self.assertEqual(self.kinds(*[(i, "no space left") for i in range(10)]), ["pattern"])
        self.rules.line("a.log", "no space left", 70)
        self.assertIn("9 more times", self.rules.take()[0]["message"])

    def test_a_flood_of_new_errors_is_held_back_and_counted(self):
        letters = [chr(97 + i // 26) + chr(97 + i % 26) for i in range(200)]
        kinds = self.kinds(*[(0, f"ERROR {word}") for word in letters])
        self.assertEqual(len(kinds), rules.FINDINGS_PER_MINUTE)
        self.rules.line("a.log", "ERROR one more", 61)
        found = self.rules.take()
        self.assertEqual([one["kind"] for one in found][:2], ["more", "new_error"])
        self.assertIn(str(201 - rules.FINDINGS_PER_MINUTE), found[0]["message"])

    def test_what_is_remembered_makes_the_same_findings_as_never_having_stopped(self):
        chance = random.Random(3)
        steps = [(i, chance.choice(["fine", "ERROR a", "ERROR b", "no space"])) for i in range(0, 400, 7)]
        whole = self.kinds(*steps)
        self.known.clear()
        self.rules, pieces = self.made({}), []
        for step in steps:
            pieces += self.kinds(step)
            self.rules = self.made(self.rules.state())
        self.assertEqual(pieces, whole)

    def test_the_shipped_pattern_finds_errors_and_takes_no_time_over_odd_lines(self):
        import json

        config = json.loads((Path(rules.__file__).parents[2] / "config/default.json").read_text())
        error = re.compile(config["watch"]["error_pattern"])
        for line in ("x ERROR y", '{"level":"error"}', "ValueError: no", "java.lang.NullPointerException: x", "FATAL"):
            self.assertTrue(error.search(line), line)
        for line in ("INFO no errors", "terror", "0 errors"):
            self.assertFalse(error.search(line), line)
        for line in ("a" * 2000, "a " * 1000, '"level":' * 250):
            error.search(line)


class Ledgers(InFolder):
    def test_what_was_written_and_not_committed_is_cut_off(self):
        first = ledger.Ledger(self.folder)
        first.append([{"n": 1}])
        committed = first.position
        first.append([{"n": 2}])
        again = ledger.Ledger(self.folder, committed)
        again.append([{"n": 3}])
        self.assertEqual([one["n"] for one in ledger.records(self.folder, again.position)], [1, 3])

    def test_it_stays_bounded_and_keeps_the_newest(self):
        one = ledger.Ledger(self.folder)
        for n in range(60):
            one.append([{"n": n, "text": "x" * 100_000}])
        self.assertLessEqual(sum(path.stat().st_size for path in self.folder.iterdir()), 4 * ledger.SEGMENT_BYTES)
        numbers = [record["n"] for record in ledger.records(self.folder, one.position)]
        self.assertEqual(numbers, list(range(numbers[0], 60)))

    def test_a_signature_that_was_not_committed_is_new_again(self):
        first = ledger.Signatures(self.folder, 0)
        self.assertTrue(first.is_new("a" * 16))
        committed = first.save()
        self.assertTrue(first.is_new("b" * 16))
        first.save()
        again = ledger.Signatures(self.folder, committed)
        self.assertFalse(again.is_new("a" * 16))
        self.assertTrue(again.is_new("b" * 16))


if __name__ == "__main__":
    unittest.main()
