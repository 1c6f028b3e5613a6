#!/usr/bin/env python3
"""steps_test.py scripts/steps.sh: a step that passed is run again only if something has changed."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(sys.argv.pop(1)).resolve()
# Each step notes that it ran. `second` fails until the file `mended` exists.
MAKEFILE = """
%:
\t@echo $@ $(WIDTH) >>build/ran
second:
\t@echo $@ >>build/ran; test -e build/mended
"""


class Steps(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="stretto-steps-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "build").mkdir()
        (self.folder / ".gitignore").write_text("/build/\n")
        (self.folder / "Makefile").write_text(MAKEFILE)
        self.git("init", "--quiet")
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words], cwd=self.folder, check=True)

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=a")

    def run_steps(self, expect=0, steps=("first WIDTH=2", "second", "third"), **variables):
        """Returns what ran, and the table's result of each step."""
        ran = self.folder / "build/ran"
        ran.write_text("")
        outer = {name: value for name, value in os.environ.items() if name not in ("STEPS", "FRESH")}
        done = subprocess.run([SCRIPT, "build/steps", *steps], cwd=self.folder, env={**outer, **variables}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, expect, done.stdout)
        return ran.read_text().split("\n")[:-1], dict(re.findall(r"^(\w+) +\d+:\d\d  (.*?) +build/steps/", done.stdout, re.MULTILINE))

    def test_an_interrupted_table_is_continued(self):
        ran, table = self.run_steps(expect=1)
        self.assertEqual(ran, ["first 2", "second", "third"])
        self.assertEqual(table, {"first": "passed", "second": "FAILED", "third": "passed"})
        (self.folder / "build/mended").touch()
        ran, table = self.run_steps()
        self.assertEqual(ran, ["second"])
        self.assertEqual(table, {"first": "passed before", "second": "passed", "third": "passed before"})
        self.assertEqual(self.run_steps(STEPS="third"), ([], {"third": "passed before"}))
        self.assertEqual(len(self.run_steps(FRESH="1")[0]), 3)

    def test_what_has_changed_is_run_again(self):
        (self.folder / "build/mended").touch()
        self.run_steps()
        self.assertEqual(self.run_steps(steps=["first WIDTH=3", "third"])[0], ["first 3"])
        (self.folder / "new").touch()
        self.assertEqual(len(self.run_steps()[0]), 3)
        self.commit()
        self.assertEqual(len(self.run_steps()[0]), 3)  # what passes with changes counts for no commit
        self.assertEqual(self.run_steps()[0], [])


if __name__ == "__main__":
    unittest.main()
