#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stretto/text/normalizer.h"

// The simple normalizers of tokenizer.json.
namespace stretto::text {

// Converts each character to lower case.
class LowercaseNormalizer : public Normalizer {
 public:
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override { return "lowercase"; }
  bool lowercase() const override { return true; }
};

// Removes combining marks. Accents of composed characters are kept unless NFD or NFKD precedes.
class StripAccentsNormalizer : public Normalizer {
 public:
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override { return "strip accents"; }
};

// Removes white space at the beginning, at the end or both.
class StripNormalizer : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override;

 private:
  bool left_;
  bool right_;
};

// Prepends a prefix to each nonempty text. The source of the prefix's bytes is the text's first character.
// REQUIRES: valid UTF-8.
class PrependNormalizer : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override { return "prepend " + prefix_; }

 private:
  std::string prefix_;
};

// Applies normalizers in sequence.
class NormalizerSequence : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override;
  bool lowercase() const override;

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

}  // namespace stretto::text
