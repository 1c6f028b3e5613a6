#pragma once

#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/settings/fields.h"

namespace stretto::settings {

// A type-erased struct of settings, held by value. The struct declares fields(Fields&), and may have check().
class Settings {
 public:
  template <class T>
  requires requires(T& settings, Fields& field) { settings.fields(field); }
  explicit Settings(T value) : held_(std::make_unique<Held<T>>(std::move(value))) {}
  Settings(const Settings& other) : held_(other.held_->clone()) {}
  Settings& operator=(Settings other) {
    held_ = std::move(other.held_);
    return *this;
  }

  void fields(Fields& field) { held_->fields(field); }
  // Throws like check_settings() in check_settings.h.
  void check() const;
  // The struct, or null if it is of another type.
  template <class T>
  T* get() {
    auto* held = dynamic_cast<Held<T>*>(held_.get());
    return held == nullptr ? nullptr : &held->value;
  }
  template <class T>
  const T* get() const {
    return const_cast<Settings*>(this)->get<T>();
  }
  bool operator==(const Settings& other) const { return held_->equals(*other.held_); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> clone() const = 0;
    virtual void fields(Fields& field) = 0;
    virtual void check() const = 0;  // that of the struct
    virtual bool equals(const Base& other) const = 0;
  };
  template <class T>
  struct Held : Base {
    explicit Held(T given) : value(std::move(given)) {}
    std::unique_ptr<Base> clone() const override { return std::make_unique<Held>(value); }
    void fields(Fields& field) override { value.fields(field); }
    void check() const override {
      if constexpr (requires { value.check(); }) value.check();
    }
    bool equals(const Base& other) const override {
      const auto* same = dynamic_cast<const Held*>(&other);
      return same != nullptr && value == same->value;
    }
    T value;
  };

  std::unique_ptr<Base> held_;
};

// One of the types of a section.
struct Kind {
  std::string type;   // its name: "SGD"
  std::string help;   // one line
  Settings defaults;  // the defaults in recipes
};

// A section whose setting `type` selects its other settings:
//   optimizer: {type: SGD, momentum: 0.9}
// It has the settings of all types, each with its own defaults; only those of the chosen type are read and
// written.
class Choice {
 public:
  // chosen_type: the default. help: the help of the setting `type`.
  Choice(const std::vector<Kind>& kinds, std::string chosen_type, std::string help);

  std::string type;

  void fields(Fields& field);

  // The settings of the chosen type. Throws ConfigError, with the closest name, if `type` is unknown.
  const Settings& settings() const;
  // The settings of the chosen type as a struct: recipe.optimizer.as<optim::AdamwOptions>().lr. Throws
  // ConfigError if the settings of the chosen type are not a T.
  template <class T>
  T& as() {
    if (T* value = find(type).settings.get<T>()) return *value;
    throw_other_type();
  }
  template <class T>
  const T& as() const {
    return const_cast<Choice*>(this)->as<T>();
  }
  // Chooses the type whose settings are a T. Throws ConfigError if there is none.
  template <class T>
  void choose(const T& settings) {
    for (Alternative& alternative : alternatives_) {
      T* value = alternative.settings.get<T>();
      if (value == nullptr) continue;
      *value = settings;
      type = alternative.type;
      return;
    }
    throw_no_type();
  }

  // Throws SettingError if values are out of range, or if the settings of the chosen type contradict each
  // other.
  void check() const { settings().check(); }
  // The value of the setting `key` of the chosen type; null if it has none.
  nlohmann::json value(const std::string& key) const;

  bool operator==(const Choice& other) const;

 private:
  struct Alternative {
    std::string type;
    Settings settings;
  };
  Alternative& find(const std::string& name);
  [[noreturn]] void throw_other_type() const;
  [[noreturn]] void throw_no_type() const;

  std::vector<Alternative> alternatives_;
  std::string help_;
};

}  // namespace stretto::settings
