#!/usr/bin/env python3
"""Builds programs against an installation of stretto (STRETTO_INSTALLED), and the project of `stretto new` against the build
folder (STRETTO_BUILD): one test case per way to do it.

Programs are compiled without optimisation, which takes half the time, and with ccache if it is installed. Most of the rest is
libtorch's headers: where it does not matter, they are those that the build's own tests have precompiled (STRETTO_MACROS: its macros).
The project of `stretto new` is compiled without them.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

PREFIX = pathlib.Path(os.environ["STRETTO_INSTALLED"])
BUILD = pathlib.Path(os.environ["STRETTO_BUILD"])
PRECOMPILED = ["-O0", "-fPIC", "-fno-math-errno", *os.environ["STRETTO_MACROS"].split(), "-DGTEST_HAS_PTHREAD=1",
               "-DFMT_SHARED", "-Winvalid-pch", "-include", str(BUILD / "CMakeFiles/stretto_torch_test_pch.dir/cmake_pch.hxx")]
PROJECT = pathlib.Path(__file__).parent / "project"
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/extending"


def run(*command, folder, expect=0, **variables):
    """Returns standard output and error of a command. Fails the test if its exit status is not the expected one."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", **variables)
    if not environment.get("STRETTO_TORCH"):
        environment.pop("STRETTO_TORCH", None)
    if shutil.which("ccache"):
        environment["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != expect:
        raise AssertionError(f"{command} ended with {done.returncode}, not {expect}:\n{done.stdout}")
    return done.stdout


def configure(source, folder, *options, **kwargs):
    return run("cmake", "-S", source, "-B", "build", "-DCMAKE_BUILD_TYPE=Release", *options, folder=folder, **kwargs)


def configure_precompiled(source, folder, *options, **kwargs):
    """Finds the installation. GCC accepts a precompiled header only with the macros with which it was compiled."""
    # Segments on separate pages, as in the top CMakeLists.txt: the loader rejects some programs of mold 1.10 without them.
    linker = ["-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold -Wl,-z,separate-loadable-segments"] if shutil.which("mold") else []
    return configure(source, folder, f"-DCMAKE_PREFIX_PATH={PREFIX}", f"-DCMAKE_CXX_FLAGS_RELEASE={' '.join(PRECOMPILED)}",
                     "-DCMAKE_CXX_EXTENSIONS=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *linker, *options, **kwargs)


def flags_of_package(folder):
    """Returns the flags by which the project that is configured in the folder finds headers."""
    words = shlex.split(json.loads((folder / "build/compile_commands.json").read_text())[0]["command"])
    return [word for word in words[:words.index("-o")] if word not in PRECOMPILED]


def searched(flags):
    """Returns the folders in which flags search headers, in their order."""
    words = iter(flags)
    own, system = [], []
    for word in words:
        if word == "-isystem":
            system.append(next(words))
        elif word.startswith("-I"):
            own.append(word[2:])
    return [folder for folder in map(os.path.realpath, own + system) if folder != "/usr/include"]


def precompiled_flags():
    """Returns the flags of pkg-config with which the precompiled header is valid."""
    return [flag for flag in flags_of_pkg_config("--cflags") if flag != "-pthread"] + PRECOMPILED


def flags_of_pkg_config(*options):
    return subprocess.run(["pkg-config", *options, "stretto"], env=dict(os.environ, PKG_CONFIG_PATH=str(PREFIX / "lib/pkgconfig")),
                          check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def public_headers():
    """Returns the headers that stretto.h includes."""
    return re.findall(r'^#include "(.*)"', (PREFIX / "include/stretto/stretto.h").read_text(), re.MULTILINE)


def installed_headers():
    return sorted(str(path.relative_to(PREFIX / "include")) for path in (PREFIX / "include").rglob("*.h"))


def reached_from(header):
    """The headers that a header includes, directly or through other headers of stretto."""
    reached, wanted = set(), [header]
    while wanted:
        text = (PREFIX / "include" / wanted.pop()).read_text()
        for included in re.findall(r"^#\s*include [<\"](.*)[>\"]", text, re.MULTILINE):
            if included not in reached:
                reached.add(included)
                wanted += [included] if included.startswith("stretto/") else []
    return reached


def others_of(header):
    """Headers of other projects that a header includes, directly or through headers of stretto."""
    return {other for other in reached_from(header) if "/" in other and not other.startswith("stretto/")}


def is_of_torch(header):
    return any(re.match("(ATen|c10|torch)/", other) for other in others_of(header))


class InFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="stretto-consumer-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)


class InstallTree(InFolder):
    def test_programs_print_their_version(self):
        version = run(PREFIX / "bin/stretto", "--version", folder=self.folder).strip()
        self.assertIn(f'set(PACKAGE_VERSION "{version}")',
                      (PREFIX / "lib/cmake/stretto/stretto-config-version.cmake").read_text())
        self.assertIn("stretto-rank", run(PREFIX / "libexec/stretto/stretto-rank", "--help", folder=self.folder))

    def test_headers_of_tests_and_of_the_command_line_are_not_installed(self):
        names = set(installed_headers())
        self.assertLessEqual({"stretto/stretto.h", "stretto/programs/stretto_rank/program.h", "stretto/lite/lite.h"}, names)
        self.assertFalse([name for name in names if name.startswith("stretto/programs/stretto/") or name.endswith(("_support.h", "_fixture.h"))])
        self.assertFalse([name for name in names if any("gtest" in other for other in reached_from(name))])

    def test_each_public_header_compiles_alone(self):
        """Other projects' headers are precompiled together for all that include libtorch, so what a header uses of them is searched
        among those it includes. A failing assertion after the header ends its compilation there: what follows is the
        instantiation of libtorch's templates, most of the time, which the programs of the other cases show for all headers."""
        public = public_headers()
        self.assertGreater(len(public), 20)
        projects = {"at": "ATen|torch", "torch": "torch", "c10": "c10|ATen|torch", "fmt": "fmt", "nlohmann": "nlohmann"}
        for name in public:
            text = re.sub("//.*", "", (PREFIX / "include" / name).read_text())
            for used in set(re.findall(rf"\b({'|'.join(projects)})::", text)):
                self.assertTrue([other for other in others_of(name) if re.match(f"({projects[used]})/", other)],
                                f"{name} uses {used}:: and includes nothing of it")

        def compile_alone(name):
            source = self.folder / (name.replace("/", "_") + ".cpp")
            source.write_text(f'#include <{name}>\nstatic_assert(false, "the header has ended");\n')
            flags = precompiled_flags() if is_of_torch(name) else flags_of_pkg_config("--cflags")
            said = run("c++", "-fsyntax-only", "-Wfatal-errors", *flags, source, folder=self.folder, expect=1)
            self.assertRegex(said, r"error: .*the header has ended", name)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compile_alone, public))


class Packages(InFolder):
    """Tests the installation through find_package and pkg-config."""

    def test_a_project_builds_and_trains(self):
        configure_precompiled(PROJECT, self.folder)
        run("cmake", "--build", "build", folder=self.folder)
        self.assertIn("200 steps", run("build/consumer", "out", folder=self.folder))
        self.assertTrue((self.folder / "out/model/line.safetensors").exists())
        self.check_pkg_config(self.folder / "build/CMakeFiles/consumer.dir/consumer.cpp.o")

    def check_pkg_config(self, compiled):
        """The package's flags alone find the headers, define what the library was compiled with, and link it."""
        flags = flags_of_pkg_config("--cflags")
        found, wanted = searched(flags), searched(flags_of_package(self.folder))
        self.assertEqual(set(found), set(wanted))
        first = os.path.realpath(PREFIX / "lib/stretto/include_first")
        for folders in found, wanted:
            self.assertIn(os.path.realpath(PREFIX / "include"), folders)
            torch = [folders.index(name) for name in folders if name.endswith("torch/include")]
            self.assertLess(folders.index(first), min(torch))  # it replaces a header of libtorch
        self.assertLessEqual({"-std=c++20", "-DUSE_DISTRIBUTED"}, set(flags))
        run("c++", compiled, *flags_of_pkg_config("--libs"), "-o", "linked", folder=self.folder)
        self.assertIn("200 steps", run("./linked", "again", folder=self.folder))

    def test_a_missing_libtorch_is_named(self):
        said = configure(PROJECT, self.folder, f"-DCMAKE_PREFIX_PATH={PREFIX}", "-DSTRETTO_TORCH=/no/such/folder", expect=1)
        self.assertRegex(" ".join(said.split()), r"there is no libtorch in /no/such/folder; set STRETTO_TORCH to a folder "
                         r"with include/ and lib/ of libtorch [0-9.]+")

    def test_another_version_of_libtorch_is_refused(self):
        version = self.folder / "torch/include/torch/headeronly/version.h"
        version.parent.mkdir(parents=True)
        version.write_text("#define TORCH_VERSION_MAJOR 1\n#define TORCH_VERSION_MINOR 13\n#define TORCH_VERSION_PATCH 1\n")
        (self.folder / "torch/lib").mkdir()
        (self.folder / "torch/lib/libtorch_cpu.so").touch()
        said = configure(PROJECT, self.folder, f"-DCMAKE_PREFIX_PATH={PREFIX}", expect=1, STRETTO_TORCH=str(self.folder / "torch"))
        self.assertRegex(" ".join(said.split()), r"torch is 1\.13\.1, but this stretto was built with 2\.[0-9]+\.[0-9]+; set STRETTO_TORCH")

    def test_saving_lites_optimizer_with_torch_is_refused_with_one_message(self):
        (self.folder / "program.cpp").write_text("""
            #include <torch/torch.h>
            #include <stretto/stretto.h>
            int main() {
              stretto::Lite lite;
              torch::nn::Linear net(2, 1);
              auto [model, optimizer] = lite.setup(net, torch::optim::Adam(net->parameters(), 1e-3));
              torch::save(model, "model.pt");
              torch::save(optimizer, "optimizer.pt");
              torch::load(optimizer, "optimizer.pt");
            }""")
        said = run("c++", "-fsyntax-only", *precompiled_flags(), "program.cpp", folder=self.folder, expect=1)
        errors = re.findall("error: (.*)", said)
        self.assertEqual(len(errors), 2, said)
        for error, verb in zip(errors, ("save", "load")):
            self.assertIn(f"torch::{verb} of a LiteOptimizer", error)
            self.assertIn(f"call lite.{verb}(folder", error)


class Extending(InFolder):
    """The programs of examples/extending, built outside the tree: a model family and a user-defined task."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="stretto-extending-")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.build = pathlib.Path(cls.temporary.name)
        configure_precompiled(EXAMPLE, cls.build, "-DCMAKE_UNITY_BUILD=ON")  # the headers are read once for all files of a program
        run("cmake", "--build", "build", "-j", "2", folder=cls.build)

    def test_a_model_family_is_trained_by_a_bundled_task(self):
        things = "film book song play".split()
        rows = [f"{word} {thing}\t{label}\n" for word, label in [("good", "positive"), ("bad", "negative")] for thing in things] * 4
        (self.folder / "reviews.tsv").write_text("text\tlabel\n" + "".join(rows))
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", *things]
        (self.folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
        (self.folder / "config.json").write_text(json.dumps({"model_type": "mean-of-words", "vocab_size": len(vocabulary), "width": 8}))
        (self.folder / "recipe.yaml").write_text(
            "task: text-classification\nmodel: {config: config.json}\ntokenizer: {path: vocab.txt}\n"
            "data: {train: reviews.tsv, validation: reviews.tsv, test: reviews.tsv, max_length: 16}\n"
            "training: {epochs: 5, global_batch_size: 8, device: cpu}\noptimizer: {lr: 0.05}\nscheduler: {type: Constant}\n")
        results = []
        for ranks in 1, 2:
            run(self.build / "build/family", "recipe.yaml", "-N", ranks, "--no-pin", f"output={ranks}", folder=self.folder)
            results.append(json.loads((self.folder / f"{ranks}/test_results.json").read_text()))
            self.assertEqual(results[-1]["accuracy"], 1)
        self.assertAlmostEqual(results[0]["loss"], results[1]["loss"], places=4)
        config = json.loads((self.folder / "1/model/config.json").read_text())
        self.assertEqual((config["model_type"], config["width"], config["id2label"]["1"]), ("mean-of-words", 8, "positive"))
        run(self.build / "build/family", "recipe.yaml", "--no-pin", "model={path: 1/model}", "training.max_steps=1", "output=further",
            folder=self.folder)
        self.assertEqual(json.loads((self.folder / "further/test_results.json").read_text())["accuracy"], 1)
        # The program stretto does not know the family.
        said = run(PREFIX / "bin/stretto", "train", "recipe.yaml", "output=x", folder=self.folder, expect=2)
        self.assertIn('model_type: "mean-of-words" is not a model_type', said)
        self.assertIn("model.path is required", run(self.build / "build/family", "recipe.yaml", "model={config: null}", folder=self.folder,
                                                    expect=2))

    def test_a_decoder_family_is_trained_and_continues_texts(self):
        words = "one two three four five six seven eight".split()
        (self.folder / "counting.txt").write_text((" ".join(words) + "\n") * 40)
        (self.folder / "words").mkdir()
        (self.folder / "words/tokenizer.json").write_text(json.dumps({
            "added_tokens": [{"id": 0, "content": "<eos>", "special": True}], "pre_tokenizer": {"type": "WhitespaceSplit"},
            "model": {"type": "WordLevel", "unk_token": "<eos>", "vocab": {word: id for id, word in enumerate(["<eos>", *words])}}}))
        (self.folder / "words/tokenizer_config.json").write_text(json.dumps({"eos_token": "<eos>"}))
        (self.folder / "config.json").write_text(json.dumps({"model_type": "small", "vocab_size": 9, "width": 16, "positions": 16}))
        (self.folder / "recipe.yaml").write_text(
            "task: causal-lm\nmodel: {config: config.json}\ntokenizer: {path: words}\n"
            "data: {train: counting.txt, validation: counting.txt, max_length: 10}\ncausal_lm: {document: line}\n"
            "training: {epochs: 30, global_batch_size: 8, device: cpu}\noptimizer: {lr: 0.02}\nscheduler: {type: Constant}\n"
            "evaluate: {samples: [three four]}\n")
        losses = []
        for ranks, strategy in (1, "ddp"), (2, "ddp"), (2, "fsdp"):
            said = run(self.build / "build/decoder", "recipe.yaml", "-N", ranks, "--no-pin", f"output={ranks}-{strategy}",
                       f"training.strategy={strategy}", folder=self.folder)
            self.assertIn("\none two three four five six seven eight\n", "\n" + said)
            output = self.folder / f"{ranks}-{strategy}"
            written = json.loads((output / "texts.jsonl").read_text().splitlines()[-1])
            self.assertEqual(written["text"], "three four five six seven eight")
            losses.append(json.loads((output / "summary.json").read_text())["best"]["loss"])
            self.assertLess(losses[-1], 0.1)
        self.assertTrue(all(abs(loss - losses[0]) < 1e-3 for loss in losses), losses)
        # The program stretto does not know the family.
        said = run(PREFIX / "bin/stretto", "generate", "--model", "1-ddp/model", "--text", "one", folder=self.folder, expect=2)
        self.assertIn('model_type: "small" is not a model_type', said)

    def test_a_user_defined_task(self):
        words = "awful poor fair good great".split()
        rows = [f"{stars}\ta {word} {thing}\n" for stars, word in enumerate(words, 1) for thing in ("film", "book")] * 4
        (self.folder / "reviews.tsv").write_text("".join(rows))
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "film", "book", *words]
        (self.folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
        (self.folder / "config.json").write_text(json.dumps(
            {"model_type": "bert", "vocab_size": len(vocabulary), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
             "intermediate_size": 32, "max_position_embeddings": 16}))
        (self.folder / "recipe.yaml").write_text(
            "task: star-ratings\nmodel: {config: config.json}\ntokenizer: {path: vocab.txt}\n"
            "data: {train: reviews.tsv, validation: reviews.tsv, test: reviews.tsv, max_length: 16}\n"
            "training: {epochs: 30, global_batch_size: 8, device: cpu, precision: fp64}\noptimizer: {lr: 0.01}\n")
        run_task = lambda *settings, **options: run(self.build / "build/task", "recipe.yaml", *settings, "--no-pin",
                                                    folder=self.folder, **options)
        early = []  # losses of the first evaluations; later ones multiply what the order of additions changes
        for ranks in 1, 2:
            run_task("-N", ranks, f"output={ranks}")
            self.assertLess(json.loads((self.folder / f"{ranks}/test_results.json").read_text())["error"], 0.4)  # 1.2 for 3 stars each
            records = map(json.loads, (self.folder / f"{ranks}/metrics.jsonl").read_text().splitlines())
            early.append([record["eval_loss"] for record in records if "eval_loss" in record][:5])
        for one, two in zip(*early, strict=True):
            self.assertAlmostEqual(one, two, places=12)
        best = (self.folder / "1/predictions.tsv").read_text().splitlines()[-1].split("\t")
        self.assertEqual(best[1], "a great book")
        self.assertGreater(float(best[0]), 4)
        # Other programs read its model folder as a classifier.
        said = run(PREFIX / "bin/stretto", "predict", "--model", "1/model", "--text", "a great film", folder=self.folder)
        self.assertIn('"label":"5"', said)
        run_task("star_ratings.most=6", "output=six", "training.max_steps=1")
        self.assertEqual(json.loads((self.folder / "six/model/config.json").read_text())["id2label"]["5"], "6")
        self.assertIn("reviews.tsv:5: expected 1 to 2 stars", run_task("star_ratings.most=2", "output=x", expect=2))
        self.assertIn("data.text_pair", run_task("data.text_pair=other", "output=x", expect=2))
        self.assertIn('did you mean "most"', run_task("star_ratings.mos=3", "output=x", expect=2))
        self.assertIn("star_ratings does not apply with task: text-classification",
                      run_task("task=text-classification", "star_ratings.most=4", "output=x", expect=2))
        self.assertIn("model.path is required", run_task("model={config: null}", "output=x", expect=2))
        # The program stretto does not know the task.
        said = run(PREFIX / "bin/stretto", "train", "recipe.yaml", "output=x", folder=self.folder, expect=2)
        self.assertIn('task: "star-ratings" is not one of', said)

    def test_a_user_defined_optimizer_schedule_and_strategy(self):
        rows = [f"{word} film\t{label}\n" for word, label in [("good", 1), ("bad", 0)]] * 16
        (self.folder / "reviews.tsv").write_text("text\tlabel\n" + "".join(rows))
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film"]
        (self.folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
        (self.folder / "config.json").write_text(json.dumps(
            {"model_type": "bert", "vocab_size": len(vocabulary), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
             "intermediate_size": 32, "max_position_embeddings": 16}))
        (self.folder / "recipe.yaml").write_text(
            "task: text-classification\nmodel: {config: config.json}\ntokenizer: {path: vocab.txt}\n"
            "data: {train: reviews.tsv, validation: reviews.tsv, max_length: 8}\n"
            "training: {epochs: 5, global_batch_size: 8, device: cpu, strategy: sharded_state}\n"
            "optimizer: {type: Lion, lr: 0.01, beta2: 0.9}\nscheduler: {type: Halving, every: 8}\n")
        rules = lambda *settings, **options: run(self.build / "build/rules", "recipe.yaml", *settings, "--no-pin", folder=self.folder,
                                                 **options)
        losses = []
        for ranks in 1, 2:
            rules("-N", ranks, f"output={ranks}")
            summary = json.loads((self.folder / f"{ranks}/summary.json").read_text())
            self.assertEqual(summary["best"]["accuracy"], 1)
            records = [json.loads(line) for line in (self.folder / f"{ranks}/metrics.jsonl").read_text().splitlines()]
            rates = {record["step"]: record["lr"] for record in records if "lr" in record}
            self.assertEqual(rates[max(rates)], 0.01 * 0.5 ** ((max(rates) - 1) // 8))
            losses.append(summary["best"]["loss"])
        self.assertAlmostEqual(losses[0], losses[1], places=4)
        rules("-N", 2, "output=2", "training.epochs=6", "checkpoint.accept_changes=[training.epochs]")  # resumes with their state
        self.assertIn("optimizer.beta2", rules("optimizer.beta2=1", "output=x", expect=2))
        self.assertIn("scheduler.every", rules("scheduler.every=0", "output=x", expect=2))
        # The program stretto knows none of them.
        said = run(PREFIX / "bin/stretto", "train", "recipe.yaml", "output=x", folder=self.folder, expect=2)
        self.assertIn("optimizer.beta2 is not a setting", said)

    def test_the_guides_show_the_files_whole(self):
        guides = EXAMPLE.parents[1] / "docs/guide"
        for guide, file in ("new-task.md", "task.cpp"), ("new-model.md", "family.cpp"):
            self.assertIn("```cpp\n" + (EXAMPLE / file).read_text() + "```\n", (guides / guide).read_text())


class NewProject(InFolder):
    def new(self, name, expect=0, prefix=BUILD):
        return run(prefix / "bin/stretto", "new", name, folder=self.folder, expect=expect)

    def test_the_prefix_is_the_programs(self):
        for prefix in BUILD, PREFIX:
            said = self.new(f"of-{prefix.name}", prefix=prefix)
            self.assertIn(f"cmake -B build -DCMAKE_PREFIX_PATH={prefix} && cmake --build build", said)
            self.assertNotIn("PREFIX below", said)
        (self.folder / "bin").mkdir()
        shutil.copy(PREFIX / "bin/stretto", self.folder / "bin")
        self.assertIn("this program was moved out of its build folder or installation", self.new("moved", prefix=self.folder))

    def test_it_builds_and_trains_alike_on_one_and_two_ranks(self):
        self.new("spirals")
        project = self.folder / "spirals"
        self.assertEqual(sorted(file.name for file in project.iterdir()),
                         [".gitignore", "CMakeLists.txt", "README.md", "recipe.yaml", "train.cpp"])
        self.assertFalse([file for file in project.iterdir() if re.search(r"@[A-Z]+@", file.read_text())])
        # Its own precompiled header takes longer to compile than the program, which includes the same headers.
        precompiled = re.search(r"target_precompile_headers\(train PRIVATE (.*)\)", (project / "CMakeLists.txt").read_text())[1]
        self.assertLessEqual(set(precompiled.split()), set(re.findall("^#include (.*)", (project / "train.cpp").read_text(), re.MULTILINE)))
        # With `bin` on the PATH, the location of stretto is not stated anywhere.
        configure(project, project, "-DCMAKE_CXX_FLAGS_RELEASE=-O0", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
                  PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}")
        self.assertIn(f"stretto_DIR:PATH={BUILD}", (project / "build/CMakeCache.txt").read_text())
        run("cmake", "--build", "build", folder=project)

        summaries = []
        for ranks in 1, 2:
            out = f"runs/{ranks}"
            said = run("build/train", "recipe.yaml", "-N", ranks, "--no-pin", "--set", f"output={out}", "--set",
                       "training.precision=fp64", folder=project)
            self.assertIn(f"over {ranks} rank", said)
            summaries.append(json.loads((project / out / "summary.json").read_text()))
            self.assertTrue((project / out / "model/model.safetensors").exists())
            self.assertTrue((project / out / "logger_logs/training_0.log").exists())
            self.assertTrue((project / out / "config.yaml").exists())
        self.assertGreater(summaries[0]["best"]["accuracy"], 0.95)
        self.assertEqual(summaries[0]["steps"], summaries[1]["steps"])
        self.assertEqual(summaries[0]["best"], summaries[1]["best"])

        # Its own settings are declared like stretto's.
        run("build/train", "recipe.yaml", "--no-pin", "model.width=8", "training.epochs=1", "output=runs/narrow",
            folder=project)
        self.assertIn("model:\n  width: 8\n", (project / "runs/narrow/config.yaml").read_text())
        self.assertIn("model.width: 0 is out of range", run("build/train", "recipe.yaml", "model.width=0", folder=project,
                                                            expect=2))

        # The program refuses bad settings like `stretto train`, and also runs as the ranks of another
        # launcher.
        self.assertIn("did you mean \"epochs\"?", run("build/train", "recipe.yaml", "--set", "training.epoch=1",
                                                       folder=project, expect=2))
        said = run(BUILD / "bin/stretto", "launch", "-N", "2", "--no-pin", "--", "build/train", "recipe.yaml", "--set",
                   "output=runs/launched", "--set", "training.epochs=1", folder=project)
        self.assertIn("over 2 ranks", said)

    def test_existing_files_are_unchanged(self):
        (self.folder / "taken").mkdir()
        (self.folder / "taken/thesis.txt").write_text("text")
        self.assertIn("taken: it already exists; choose another name", self.new("taken", expect=2))
        self.assertEqual([file.name for file in self.folder.rglob("*")], ["taken", "thesis.txt"])
        (self.folder / "link").symlink_to("nowhere")
        self.assertIn("link: it already exists", self.new("link", expect=2))

    def test_bad_names_are_refused(self):
        for name in "", "3d", "a/b", "../up", "two words", "-x", ".hidden", "größe", "a" * 65:
            said = run(BUILD / "bin/stretto", "new", "--", name, folder=self.folder, expect=2)
            self.assertIn(f'"{name}" is not a valid project name: expected a letter, followed by letters', said)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
