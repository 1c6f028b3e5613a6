#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/compat/foreign.h"
#include "stretto/compat/foreign_files_support.h"

// What the tests that read files of other tools need.
namespace stretto::compat {

class Foreign : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, std::string text, const std::string& from = "",
                              const std::string& to = "") const {
    if (!from.empty()) {
      EXPECT_NE(text.find(from), std::string::npos) << from;
      text.replace(text.find(from), from.size(), to);
    }
    write_file_atomic(folder_.path() / name, text);
    return folder_.path() / name;
  }
  Recipe recipe(const ForeignConfig& foreign, const std::string& yaml = "output: run\n",
                const std::vector<std::string>& overrides = {}) const {
    return load_recipe(write("recipe.yaml", yaml), overrides, {}, foreign);
  }
  template <class Action>
  static std::string refusal(const Action& action) {
    try {
      action();
      return "no error";
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
  std::string deepspeed_refusal(const std::string& from, const std::string& to) const {
    return refusal([&] { read_deepspeed(write("ds.json", zero2_json, from, to)); });
  }
  std::string accelerate_refusal(const std::string& from, const std::string& to) const {
    return refusal([&] { recipe(read_accelerate(write("a.yaml", fsdp_yaml, from, to))); });
  }

  TempFolder folder_;
};

}  // namespace stretto::compat
