#include <cstdlib>
#include <map>
#include <sstream>

#include "tests/messages/mistakes.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"

namespace stretto {
namespace {

std::string message_of(const Mistake& mistake) {
  const TempFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  std::string message = "no error";
  try {
    mistake.make();
  } catch (const Error& error) {
    message = error.what();
  }
  std::filesystem::current_path(before);
  return message;
}

// The mistakes in their order, by name.
const std::vector<std::pair<std::string, std::string>>& all_messages() {
  static const auto found = [] {
    std::vector<std::pair<std::string, std::string>> messages;
    for (const Mistake& mistake : mistakes()) messages.emplace_back(mistake.name, message_of(mistake));
    return messages;
  }();
  return found;
}

// A line per mistake: name, tab, message.
std::string text_of_messages() {
  std::string lines;
  for (const auto& [name, message] : all_messages()) lines += name + "\t" + message + "\n";
  return lines;
}

std::map<std::string, std::string> by_name(const std::string& text) {
  std::map<std::string, std::string> messages;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t tab = line.find('\t');
    EXPECT_NE(tab, std::string::npos) << line << ": expected a name, a tab and a message";
    EXPECT_TRUE(messages.emplace(line.substr(0, tab), line.substr(tab + 1)).second)
        << line << ": the name occurs twice";
  }
  return messages;
}

// The golden file is the only place with whole messages: other tests check the key, the position and the
// suggestion.
TEST(Messages, EqualTheGoldenFile) {
  const std::string found = text_of_messages();
  if (std::getenv("STRETTO_REWRITE_MESSAGES") != nullptr) write_file_atomic(GOLDEN_FILE, found);
  const auto messages = by_name(found), golden = by_name(read_file(GOLDEN_FILE));
  for (const auto& [name, message] : messages) {
    const auto expected = golden.find(name);
    EXPECT_EQ(message, expected == golden.end() ? "" : expected->second)
        << name << ": to accept it, run this test with STRETTO_REWRITE_MESSAGES=1 and read the difference";
  }
  for (const auto& [name, message] : golden)
    EXPECT_TRUE(messages.contains(name)) << name << ": there is no such mistake any more";
}

TEST(Messages, AreOneLineEach) {
  for (const auto& [name, message] : all_messages()) {
    EXPECT_NE(message, "no error") << name;
    EXPECT_EQ(message.find('\n'), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace stretto
