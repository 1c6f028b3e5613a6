#!/usr/bin/env python3
"""Lists what the comments of the public headers leave out.

    check_api_comments.py ROOT

The public headers are those that stretto/stretto.h reaches. There, a class or a function of a namespace has a
comment; a function that takes or returns tensors has one that gives their shapes; and a function whose
definition contains `throw` has one that names the errors. A comment counts for all declarations of its paragraph
(up to an empty line), and a class's for its members. Members that override others are described at those.

Structs of settings (those with fields()) describe their members where they declare them, and check() throws as
settings/check_settings.h says. A separate comment at the start of a namespace counts for the whole header.

It reads text, not C++: a definition is found by the names of class and function, and a throw inside of a
function that it calls isn't seen.
"""

import bisect
import collections
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](stretto/[^>"]+)', re.M)
INSTALLED = re.compile(r"^set\(wanted ([^)]*)\)$", re.M)
COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|^\s*#(?:\\\n|[^\n])*',
    re.S | re.M)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b(?:\s+class\b)?\s*([\w:]*)")
# The name before the parameters, with its class where a source defines a member.
FUNCTION = re.compile(r"(?:\b(\w+)(?:<[^<>]*>)?::)?(~?\b\w+|\boperator\b\W+)\s*\(")
TENSOR = re.compile(r"\bTensor\b")
SHAPE = re.compile(r"\[[^\]\n]*\]|\b(shapes?|scalars?|elements?|dimensions?)\b", re.I)
ERRORS = re.compile(r"\b(throws?|thrown|rethrows?|exceptions?)\b|\w+Error\b", re.I)
FIELDS = re.compile(r"\bvoid fields\(settings::Fields\b")
KEYWORDS = {"if", "for", "while", "switch", "catch", "return", "sizeof", "decltype", "alignas", "noexcept",
            "static_assert", "defined", "requires", "throw", "explicit"}

Declaration = collections.namedtuple(
    "Declaration", "line text body is_scope is_settings in_settings scopes public comment")


def public_headers(root):
    """The headers that `cmake --install` installs."""
    headers = INSTALLED.search((root / "cmake/InstallHeaders.cmake").read_text())[1].split()
    for header in headers:
        headers += [found for found in INCLUDE.findall((root / header).read_text()) if found not in headers]
    return sorted(set(headers))


def blanked(text):
    """`text` with spaces for comments, literals and preprocessor lines; positions and lines stay."""
    return COMMENT_OR_STRING.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def closing(code, opening):
    """The position of the brace that closes the one at `opening`."""
    depth = 0
    for found in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.start()
    return len(code) - 1


def comment_above(lines, first, last):
    """The comments of the lines of a declaration and of the paragraph above it."""
    found = [line.partition("//")[2] for line in lines[first:last + 1]]
    for line in reversed(lines[:first]):
        if not line.strip() or re.match(r"\s*(public|protected|private):|.*\{\s*$", line):
            break
        if re.match(r"\s*//", line):
            found.insert(0, line.partition("//")[2])
    return " ".join(found).strip()


def declarations(text):
    """The declarations of namespaces and classes; bodies of functions and initial values aren't entered."""
    code, lines = blanked(text), text.splitlines()
    starts = [0] + [found.end() for found in re.finditer("\n", text)]
    scopes = []  # (kind, name, comment)
    settings = []  # whether each declares fields()
    public, begin, at = [True], 0, 0
    end_of_part = re.compile(r"[;{}(]|\b(public|protected|private)\s*:(?!:)")
    while found := end_of_part.search(code, at):
        at = found.end()
        if found[0] == "(":  # the parameters may contain braces
            depth = 1
            while depth and at < len(code):
                depth += {"(": 1, ")": -1}.get(code[at], 0)
                at += 1
            continue
        if found[1]:
            public[-1] = found[1] == "public"
            begin = at
            continue
        if found[0] == "}":
            if scopes:
                scopes.pop(), public.pop(), settings.pop()
            begin = at
            continue
        head = code[begin:found.start()]
        scope = SCOPE.search(re.sub(r"<[^<>]*>", "", head)) if found[0] == "{" else None
        declared = re.split(r"(?<!:):(?!:)", head)[0] if found[0] == "{" else head
        body = ""
        is_scope = scope and "(" not in declared
        if found[0] == "{" and not is_scope:
            end = closing(code, found.start())
            body = code[found.start():end + 1]
            at = end + 1
            if not re.search(r"\)[^=]*$", head) or code[at:at + 1] in ",({":  # an initial value
                if code[at:at + 1] == ";":
                    at += 1
                elif code[at:].lstrip()[:1] in (",", "{"):
                    continue
        if head.strip():
            position = begin + len(head) - len(head.lstrip())
            first = bisect.bisect_right(starts, position) - 1
            last = bisect.bisect_right(starts, found.start()) - 1
            comment = comment_above(lines, first, last)
            is_settings = bool(is_scope and FIELDS.search(code, found.start(), closing(code, found.start())))
            yield Declaration(first + 1, " ".join(head.split()), body, bool(is_scope), is_settings,
                              bool(settings and settings[-1]), list(scopes), all(public), comment)
            if is_scope:
                scopes.append((scope[1], scope[2], comment))
                public.append(scope[1] != "class")
                settings.append(is_settings)
                if scope[1] == "enum":
                    at = closing(code, found.start())
        elif is_scope or found[0] == "{":
            scopes.append(("block", "", ""))
            public.append(True)
            settings.append(False)
        begin = at


def function_of(declaration):
    """(class or "", name) of a function that is declared or defined; None of anything else."""
    text = re.sub(r"^template\s*<.*?>\s*(?=\w)", "", declaration.text)
    if re.match(r"(using|typedef|friend|static_assert|namespace|enum)\b", text) or re.match(r"[^(]*[^=!<>]=[^=]", text):
        return None
    for found in FUNCTION.finditer(text):
        if found[2] not in KEYWORDS:
            inner = [name for kind, name, _ in declaration.scopes if kind in ("class", "struct")]
            return (found[1] or (inner[-1] if inner else ""), found[2].strip())
    return None


def throwing(root):
    """The functions of stretto whose definition contains a throw."""
    found = set()
    for file in sorted((root / "stretto").rglob("*")):
        if file.suffix not in (".h", ".cpp") or file.name.endswith("_test.cpp"):
            continue
        text = file.read_text()
        if "throw" in text:
            found |= {function_of(each) for each in declarations(text) if re.search(r"\bthrow\b", each.body)}
    return found - {None}


def comment_of_namespace(text):
    """The comment that follows the first namespace's opening and, by an empty line, no declaration."""
    found = re.search(r"^namespace [^\n]*\{\n\n((?://[^\n]*\n)+)\n", text, re.M)
    return found[1] if found else ""


def mistakes_of_header(header, text, throws):
    found = list(declarations(text))
    general = comment_of_namespace(text)
    comments = collections.defaultdict(str)  # of all declarations of a name: overloads, and definitions further below
    for each in found:
        comments[function_of(each)] += each.comment
    for each in found:
        kinds = [kind for kind, _, _ in each.scopes]
        names = [name for _, name, _ in each.scopes]
        if not each.public or "detail" in names:
            continue
        function = function_of(each)
        if function is None:
            struct = re.match(r"(?:template\s*<.*?>\s*)?(class|struct) (?:\[\[.*\]\] )?(\w+)(?: final)?(?: :.*)?$", each.text)
            if struct and each.is_scope and not each.comment and not each.is_settings:
                yield f"{header}:{each.line}: {struct[1]} {struct[2]} has no comment"
            continue
        if re.search(r"\boverride\b|\bfinal$|=\s*(default|delete)$|^friend\b", each.text) or function[1][0] == "~":
            continue
        where = f"{header}:{each.line}: {'::'.join([*filter(None, names[1:]), function[1]])}()"
        comment = comments[function]
        context = " ".join([general, *(comment for kind, _, comment in each.scopes if kind != "namespace"), comment])
        is_free = not {"class", "struct"} & set(kinds) and not function[0] and "operator" not in function[1]
        if is_free and not comment and function[1] != "names_of":
            yield f"{where} has no comment"
        if TENSOR.search(each.text) and not SHAPE.search(context):
            yield f"{where} gives no shapes of its tensors"
        if function in throws and not ERRORS.search(context) and not (each.in_settings and function[1] == "check"):
            yield f"{where} doesn't state what it throws"


def mistakes(root):
    throws = throwing(root)
    for header in public_headers(root):
        yield from mistakes_of_header(header, (root / header).read_text(), throws)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = list(mistakes(root))
    print("\n".join(found) or "the comments of the public headers give shapes and errors")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
