#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stretto/text/normalizer.h"

// The normalizers of tokenizer.json that are a line of description each.
namespace stretto::text {

// Each character in lower case.
class LowercaseNormalizer : public Normalizer {
 public:
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override { return "lowercase"; }
  bool lowercase() const override { return true; }
};

// Without combining marks; accents of composed characters stay (NFD or NFKD before it separates them).
class StripAccentsNormalizer : public Normalizer {
 public:
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override { return "strip accents"; }
};

// Without the white space at the beginning, at the end or both.
class StripNormalizer : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override;

 private:
  bool left_;
  bool right_;
};

// A text in front of each text that is not empty; it stands for the first character. REQUIRES: valid UTF-8.
class PrependNormalizer : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override { return "prepend " + prefix_; }

 private:
  std::string prefix_;
};

// One after the other.
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
