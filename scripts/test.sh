#!/usr/bin/env bash
# scripts/test.sh BUILD_FOLDER [ctest arguments]: runs the tests of a build in JOBS processes (default 3: two
# cores, and tests also wait), then reports which were skipped and why, which failed, and what sanitizers found.
# Ends with ctest's last lines and its exit code.
set -euo pipefail
build=$1
shift

# Threads of OpenMP sleep at once while they wait. By default they keep their core busy, on which another test
# runs: some tests took 20 times as long.
export OMP_WAIT_POLICY=passive

# Sanitizers write to files what many tests would capture with the other output of a program (next to ASan, GCC's
# UBSan writes to stderr only).
findings=$(realpath "$build")/findings
rm -rf "$findings"
for options in ASAN_OPTIONS TSAN_OPTIONS; do
  [[ -z ${!options:-} ]] || { mkdir -p "$findings" && export "$options=${!options}:log_path=$findings/report"; }
done

status=0
ctest --test-dir "$build" -j "${JOBS:-3}" --output-on-failure --no-tests=error --timeout 600 \
  --test-output-size-passed 1048576 --output-junit junit.xml "$@" 2>&1 | tee "$build/ctest.log" || status=${PIPESTATUS[0]}

python3 - "$build/junit.xml" <<'PYTHON' || true
import collections, re, sys
import xml.etree.ElementTree as ElementTree

# One CTest test is a suite of GoogleTest, one of its tests, or a script.
google = re.compile(r"^\S+:\d+: Skipped\n(.*?)\n.*?^\[  SKIPPED \] (\S+) \(", re.MULTILINE | re.DOTALL)
tests = 0
skipped = collections.defaultdict(list)  # reason -> tests
failed = []  # for each failed test of CTest: its failed cases, or its name, and the place of the first failure
for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
    output = case.findtext("system-out") or ""
    running = re.search(r"^\[==========\] Running (\d+) tests?", output, re.MULTILINE)
    tests += int(running[1]) if running else 1
    if case.get("status") == "fail":
        names = re.findall(r"^\[  FAILED  \] ([^\s,]+).* \(\d+ ms\)$", output, re.MULTILINE)
        place = re.search(r"^\S+:\d+(?=: Failure$)", output, re.MULTILINE)
        failed.append(", ".join(names or [case.get("name")]) + (f", first at {place[0]}" if place else ""))
    found = google.findall(output)
    for reason, name in found:
        skipped[reason.strip()].append(name)
    if not found and case.get("status") != "fail" and case.find("skipped") is not None:
        reason = re.search(r"^Skipped: (.*\S.*)$", output, re.MULTILINE)
        why = reason[1] if reason else case.find("skipped").get("message", "no reason given")
        skipped[why].append(case.get("name"))

count = sum(map(len, skipped.values()))
print(f"\n{tests} tests, {count} of them skipped{':' if count else ''}")
for reason, names in sorted(skipped.items()):
    print(f"  {len(names)} x {reason}")
    for name in names[:3]:
        print(f"      {name}")
    if len(names) > 3:
        print(f"      and {len(names) - 3} more")
if failed:
    print("failed:")
for line in failed:
    print(f"  {line}")
PYTHON

for report in "$findings"/*; do
  [[ -e $report ]] || continue
  status=1
  printf '\n%s:\n' "$report"
  head -n 30 "$report"
done

echo
grep -hE "^[0-9]+ headers are reached from" "$build/Testing/Temporary/LastTest.log" || true
grep -E "tests passed, |^Total Test time|^No tests were found" "$build/ctest.log" || true
exit "$status"
