#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace stretto::arguments {

// The source of the texts for a verb that runs a model.
struct InputArguments {
  std::vector<std::string> texts;
  std::filesystem::path input = "-";  // standard input; REQUIRES: no texts
  std::string input_format;           // "": by the extension of `input`
};

// `text_help`: the help of --text.
inline void add_input_arguments(CLI::App& verb, InputArguments& arguments, const std::string& text_help) {
  auto* input =
      verb.add_option("--input", arguments.input,
                      "A file with a text per line, .jsonl (a JSON value per line) or .json; - is standard "
                      "input (the default)");
  input->type_name("FILE");
  auto* format =
      verb.add_option("--input-format", arguments.input_format,
                      "Format of the input (default: by the file's extension; of standard input: text)");
  format->check(CLI::IsMember({"text", "json", "jsonl"}))->type_name("FORMAT");
  verb.add_option("--text", arguments.texts, text_help)
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->excludes(input)
      ->excludes(format);
}

}  // namespace stretto::arguments
