#!/usr/bin/env python3
"""Builds the HTML reference of the public headers, with the guides, by Doxygen (docs/Doxyfile).

    make_docs.py OUTPUT          writes OUTPUT/html; fails if Doxygen warns
    make_docs.py --filter FILE   prints a header or a page as Doxygen reads it
"""

import pathlib
import re
import subprocess
import sys

import check_api_comments

ROOT = pathlib.Path(__file__).resolve().parents[1]


def pages():
    """The pages of the reference, below ROOT; README.md is the first one."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def name_of(page):
    if page == ROOT / "README.md":
        return "index"
    return re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))


def fragment_of(heading):
    """The fragment by which GitHub links to a heading."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def filtered_page(page):
    """The page with names for its headings, to which links of other pages lead. Links to sources are plain text."""
    known, listed = set(pages()), set()

    def link(found):
        text, target = found.groups()
        if re.match(r"[a-z]+:", target):
            return found[0]
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if file.suffix in (".png", ".svg"):
            return f"[{text}]({file.name})"
        if file not in known:
            return text
        name = name_of(file) + (f"--{fragment}" if fragment else "")
        if page != ROOT / "docs/README.md" or fragment or name in listed or file == ROOT / "README.md":
            return f"[{text}](@ref {name})"
        listed.add(name)  # the guides are below the page that lists them
        return f'\\subpage {name} "{text}"'

    def heading(found):
        return f"{found[0]} {{#{name_of(page)}--{fragment_of(found[1])}}}"

    text = page.read_text()
    if page != ROOT / "README.md":
        text = text.replace("\n", f" {{#{name_of(page)}}}\n", 1)
    for part in re.split(r"(^ *```.*?^ *```$)", text, flags=re.M | re.S):
        if not part.lstrip().startswith("```"):
            part = re.sub(r"^##+ +(.*)$", heading, part, flags=re.M)
            part = re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", link, part)
        yield part


def escaped(text):
    """Prose in which Doxygen finds no command and no HTML; `code` and "text" stay."""
    parts = re.split(r"""(`[^`]*`|"[^"]*")""", text)
    return "".join(part if part[:1] in ("`", '"') else re.sub(r"([\\@<>#%&$])", r"\\\1", part) for part in parts)


def filtered_header(text):
    """The header with its // comments as Doxygen's."""
    # Doxygen cannot read specialisations of another library's templates, which come last.
    text = re.sub(r"(\n\}  // namespace stretto\S*\n)(?!.*\n\}  // namespace).*", r"\1", text, flags=re.S)
    return "\n\n".join(filtered_paragraph(part.split("\n")) for part in text.split("\n\n"))


def filtered_paragraph(lines):
    """The lines between two empty ones. A comment above several declarations becomes that of each."""
    comments = next((i for i, line in enumerate(lines) if not re.match(r"\s*//", line)), 0)
    declared = lines[comments:]
    shared = (comments and sum(bool(re.search(r"[;}](  //.*)?$", line)) for line in declared) > 1
              and not any(re.match(r"\s*//|.*\{$|\s*\}|\w+:|#", line) for line in declared))
    written, in_code = [], False
    for number, line in enumerate(lines):
        if shared and number == comments:
            written.append("///@{")
        found = re.match(r"(\s*)//(?! ---)(.*)", line)
        if found:
            indent, comment = found.groups()
            is_code = comment.startswith("   ")
            if is_code != in_code and written and written[-1].strip() != "///":
                written.append(f"{indent}///")
            written.append(f"{indent}///{'  ' + comment if is_code else escaped(comment)}")
            in_code = is_code
            continue
        in_code = False
        trailing = re.match(r'((?:[^"/]|"(?:\\.|[^"\\])*"|/(?!/))*\S\s+)//(?! ?NOLINT)(.*)', line)
        is_of_member = trailing and not re.match(r"\s*(#|(struct|class) \w+;)", line)
        written.append(f"{trailing[1]}///<{escaped(trailing[2])}" if is_of_member else line)
    return "\n".join([*written, "///@}"] if shared else written)


def main():
    if sys.argv[1] == "--filter":
        file = pathlib.Path(sys.argv[2]).resolve()
        print("".join(filtered_page(file)) if file.suffix == ".md" else filtered_header(file.read_text()))
        return 0
    output = pathlib.Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    inputs = [*(str(page.relative_to(ROOT)) for page in pages()), *check_api_comments.public_headers(ROOT)]
    settings = f"""
      INPUT = {" ".join(inputs)}
      OUTPUT_DIRECTORY = {output.resolve()}
      USE_MDFILE_AS_MAINPAGE = {ROOT / "README.md"}
    """
    config = (ROOT / "docs/Doxyfile").read_text() + settings
    return subprocess.run(["doxygen", "-"], cwd=ROOT, input=config, text=True).returncode


if __name__ == "__main__":
    sys.exit(main())
