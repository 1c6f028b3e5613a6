#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "stretto/base/error.h"

namespace stretto {

// Throws ConfigError for a name that is not among `known`; for Registry. Defined in strings.cpp, next to
// did_you_mean.
[[noreturn]] void refuse_unknown_name(const std::string& where, const std::string& name,
                                      const std::string& kind, const std::vector<std::string>& known);

// Implementations of one kind, found by name: models by model_type, optimizers, tasks, ... An Entry has
// `name`, a member or a function. A registry is a value; those that programs extend by a function
// register_...() are global.
template <class Entry>
class Registry {
 public:
  // `kind` is what an entry is, with its article, for messages: "a model type".
  Registry(std::string kind, std::vector<Entry> entries) : kind_(std::move(kind)) {
    for (Entry& entry : entries) add(std::move(entry));
  }

  // Throws ConfigError for a name that is taken.
  void add(Entry entry) {
    if (find(name_of(entry)) != nullptr)
      throw ConfigError("\"{}\" is registered twice as {}; choose another name", name_of(entry), kind_);
    entries_.push_back(std::move(entry));
  }

  // Returns null for an unknown name. Valid until the next add().
  const Entry* find(const std::string& name) const {
    for (const Entry& entry : entries_) {
      if (name_of(entry) == name) return &entry;
    }
    return nullptr;
  }

  // Throws ConfigError beginning with `where` that lists the known names.
  const Entry& at(const std::string& name, const std::string& where) const {
    if (const Entry* entry = find(name)) return *entry;
    refuse_unknown_name(where, name, kind_, names());
  }

  // All names, in the order of registration, like entries().
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(name_of(entry));
    return names;
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  static const std::string& name_of(const Entry& entry) { return std::invoke(&Entry::name, entry); }

  std::string kind_;
  std::vector<Entry> entries_;
};

}  // namespace stretto
