#!/usr/bin/env python3
"""Tests run_readme.py (it runs marked blocks, and fails if a block fails), check_snippets.py, and the scripts
check_api_comments.py and make_docs.py."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

import check_snippets
import run_readme

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_api_comments
import make_docs


class RunReadme(unittest.TestCase):
    def run_text(self, text):
        """Exit status and output for a README with this content (None: no README)."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "bin").mkdir()
            program = folder / "bin" / "stretto"
            program.write_text("#!/bin/sh\necho the program got $*\n")
            program.chmod(0o755)
            golden = folder / "tests/golden/bert/old_names"
            golden.mkdir(parents=True)
            for name in ["config.json", "model.safetensors"]:
                (golden / name).write_text("{}")
            if text is not None:
                (folder / "README.md").write_text(text)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                status = run_readme.main([str(folder / "README.md"), "--bin", str(folder / "bin"), "--root", str(folder)])
            return status, printed.getvalue()

    def test_marked_blocks_run_in_order_in_one_folder(self):
        status, printed = self.run_text(
            "# Title\n<!-- test: one -->\n```sh\nstretto train > made\n```\ntext\n```sh\nfalse\n```\n"
            '<!-- test: two -->\n\n```sh\ngrep "got train" made\ntest -f "$STRETTO_ROOT/README.md"\n```\n')
        self.assertEqual(status, 0, printed)
        self.assertIn('README.md:4: block "one" passed', printed)
        self.assertIn('block "two" passed', printed)

    def test_an_encoder_stands_in_and_real_data_does_not(self):
        status, printed = self.run_text(
            '<!-- test: one -->\n```sh\nls $STRETTO_ENCODER/{config.json,model.safetensors,vocab.txt}\n'
            'test -z "${STRETTO_DATA:-}"\n```\n')
        self.assertEqual(status, 0, printed)

    def test_a_failing_block_fails_and_is_named(self):
        status, printed = self.run_text("<!-- test: bad -->\n```sh\necho before\nls /no/such/file\necho after\n```\n")
        self.assertEqual(status, 1)
        self.assertIn('README.md:3: block "bad" ended with 2', printed)
        self.assertIn("before\n", printed)
        self.assertNotIn("\nafter\n", printed.split("its output:")[1])

    def test_an_output_is_compared(self):
        page = "<!-- test: one -->\n```sh\nstretto plan\n```\n<!-- output: one -->\n```text\nthe program got {}\n```\n"
        self.assertEqual(self.run_text(page.format("plan"))[0], 0)
        status, printed = self.run_text(page.format("train"))
        self.assertEqual(status, 1)
        self.assertIn('block "one" has another output:', printed)
        self.assertIn("-the program got train\n+the program got plan", printed)
        self.assertIn('there is no block "two" before', self.run_text("<!-- output: two -->\n```text\na\n```\n")[1])

    def test_a_failure_inside_a_pipe_counts(self):
        self.assertEqual(self.run_text("<!-- test: pipe -->\n```sh\nfalse | cat\n```\n")[0], 1)

    def test_marks_without_a_block_are_errors(self):
        for text, message in [
            ("<!-- test: lost -->\ntext\n", 'README.md:1: the mark "lost" is not followed'),
            ("<!-- test: open -->\n```sh\ntrue\n", "README.md:2: this ```sh block has no end"),
            ("<!-- test: a -->\n```sh\ntrue\n```\n<!-- test: a -->\n```sh\ntrue\n```\n", '"a" is used twice'),
        ]:
            status, printed = self.run_text(text)
            self.assertEqual(status, 1)
            self.assertIn(message, printed)

    def test_nothing_to_run_is_a_skip(self):
        self.assertEqual(self.run_text(None)[0], run_readme.SKIPPED)
        self.assertEqual(self.run_text("# Title\n```sh\nfalse\n```\n")[0], run_readme.SKIPPED)


class CheckSnippets(unittest.TestCase):
    def mistakes(self, page):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "net.h").write_text("struct Net {\n  int up;\n\n  int down;\n  int head;\n};\n")
            return list(check_snippets.mistakes(root, "page.md", page))

    def test_a_part_of_the_file_may_be_indented_and_leave_lines_out(self):
        for snippet in ("int up;\n    int down;", "struct Net {\n...\n  int head;\n};"):
            self.assertEqual(self.mistakes(f"<!-- from: net.h -->\n```cpp\n{snippet}\n```\n"), [])
        self.assertEqual(self.mistakes("```cpp\nanything\n```\n"), [])

    def test_other_lines_are_named(self):
        for snippet, line in (("int up;\nint head;", "int up;"), ("int down;\n...\nint up;", "int up;"), ("int left;", "int left;")):
            self.assertEqual(self.mistakes(f"<!-- from: net.h -->\n```cpp\n{snippet}\n```\n"),
                             [f'page.md:2: net.h does not contain the lines from "{line}"'])
        self.assertEqual(self.mistakes("<!-- from: net.hpp -->\n```cpp\nint up;\n```\n"), ["page.md:2: there is no net.hpp"])
        marked = "<!-- from: net.h -->\n```cpp\nint up;\n```\n"
        self.assertEqual(self.mistakes(marked + "\n```cpp\nint up;\n```\n"),
                         ["page.md:6: this snippet has no <!-- from: FILE -->, unlike others of the page"])


class ApiComments(unittest.TestCase):
    def mistakes(self, header, source=""):
        """What is found in a public header with these declarations, and a source that defines them."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("cmake", "stretto"):
                (root / name).mkdir()
            (root / "cmake/InstallHeaders.cmake").write_text("set(wanted stretto/stretto.h)\n")
            (root / "stretto/stretto.h").write_text('#include "stretto/a.h"\n')
            (root / "stretto/a.h").write_text("namespace stretto {\n\n" + header + "\n}  // namespace stretto\n")
            (root / "stretto/a.cpp").write_text("namespace stretto {\n" + source + "\n}\n")
            return [found.partition(": ")[2] for found in check_api_comments.mistakes(root)]

    def test_classes_and_functions_have_comments(self):
        self.assertEqual(self.mistakes("struct A {\n  int b = 0;\n};\n\nint f(int x);\n"),
                         ["struct A has no comment", "f() has no comment"])
        self.assertEqual(self.mistakes("// A pair.\nstruct A {\n  int b = 0;\n};\n\n// Doubles x.\nint f(int x);\n"), [])

    def test_the_comment_of_a_paragraph_counts_for_all_of_it(self):
        self.assertEqual(self.mistakes("// Doubles x.\nint f(int x);\nint g(int x);\n\nint h(int x);\n"), ["h() has no comment"])

    def test_tensors_have_shapes(self):
        self.assertEqual(self.mistakes("// Adds one to x.\nTensor f(const Tensor& x);\n"), ["f() gives no shapes of its tensors"])
        self.assertEqual(self.mistakes("// Adds one to x [N].\nTensor f(const Tensor& x);\n"), [])

    def test_errors_are_stated_where_the_definition_throws(self):
        header = "// A list.\nclass A {\n public:\n  // The first one.\n  int first() const;\n\n private:\n  int last() const;\n};\n"
        source = "int A::first() const { throw Error(\"none\"); }\nint A::last() const { throw Error(\"none\"); }\n"
        self.assertEqual(self.mistakes(header, source), ["A::first() doesn't state what it throws"])
        self.assertEqual(self.mistakes(header.replace("one.", "one. Throws Error."), source), [])
        self.assertEqual(self.mistakes(header, source.replace("throw Error", "fail")), [])


class Docs(unittest.TestCase):
    def test_comments_become_doxygens(self):
        self.assertEqual(make_docs.filtered_header('struct A {\n  // Up to 5 % of <folder>, "<a>/b".\n  int b;  // in MiB\n};\n'),
                         'struct A {\n  /// Up to 5 \\% of \\<folder\\>, "<a>/b".\n  int b;  ///< in MiB\n};\n')

    def test_a_shared_comment_is_that_of_each_declaration(self):
        self.assertEqual(make_docs.filtered_header("// Both.\nint f(A a = {});\nint g();\n\nint h();"),
                         "/// Both.\n///@{\nint f(A a = {});\nint g();\n///@}\n\nint h();")

    def test_links_lead_to_pages_and_headings(self):
        page = "".join(make_docs.filtered_page(make_docs.ROOT / "docs/guide/lite.md"))
        self.assertRegex(page, r"^# .* \{#docs_guide_lite\}\n")
        self.assertRegex(page, r"\]\(@ref docs_guide_\w+")
        self.assertNotRegex(page, r"\]\([\w./]+\.md")


if __name__ == "__main__":
    unittest.main()
