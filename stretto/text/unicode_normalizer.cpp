#include "stretto/text/unicode_normalizer.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "stretto/text/transformation.h"
#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

// A character of the normal form. `change`: see Transformation::write.
struct Part {
  char32_t value;
  int change;
  uint8_t order;  // the combining class
};

// Takes decomposed characters in canonical order and writes them, optionally composed (UAX 15, D117).
class Composer {
 public:
  Composer(bool compose, Transformation& out) : compose_(compose), out_(out) {}

  void add(const Part& part) {
    if (!compose_ || (!starter_ && part.order != 0)) return out_.write(part.value, part.change);
    if (!starter_) {
      starter_ = part;
      return;
    }
    // A mark of the same class or a higher one in between blocks the composition.
    const bool blocked = !marks_.empty() && marks_.back().order >= part.order;
    if (const auto composed = blocked ? std::nullopt : compose(starter_->value, part.value)) {
      starter_ = Part{*composed, starter_->change + part.change - 1, 0};
    } else if (part.order == 0) {
      finish();
      starter_ = part;
    } else {
      marks_.push_back(part);
    }
  }

  void finish() {
    if (starter_) out_.write(starter_->value, starter_->change);
    for (const Part& mark : marks_) out_.write(mark.value, mark.change);
    starter_.reset();
    marks_.clear();
  }

 private:
  bool compose_;
  Transformation& out_;
  std::optional<Part> starter_;
  std::vector<Part> marks_;
};

// Writes the pending marks in canonical order. The next character of class 0 fixes that order.
void flush(std::vector<Part>& marks, Composer& composer) {
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Part& a, const Part& b) { return a.order < b.order; });
  for (const Part& mark : marks) composer.add(mark);
  marks.clear();
}

}  // namespace

void UnicodeNormalizer::normalize(std::string_view text, uint32_t first_character,
                                  NormalizedText& out) const {
  // ASCII is in every normal form.
  if (std::all_of(text.begin(), text.end(), is_ascii))
    return NoNormalizer().normalize(text, first_character, out);
  Transformation transformation(first_character, out);
  Composer composer(form_.compose, transformation);
  std::vector<Part> marks;
  Decomposition buffer;
  for (size_t position = 0; position < text.size();) {
    const char32_t c = next_code_point(text, position);
    int change = 0;
    for (const char32_t value :
         form_.compatibility ? decompose_compatible(c, buffer) : decompose(c, buffer)) {
      const Part part{value, change, combining_class(value)};
      change = 1;
      if (part.order != 0) {
        marks.push_back(part);
        continue;
      }
      flush(marks, composer);
      composer.add(part);
    }
  }
  flush(marks, composer);
  composer.finish();
}

std::string UnicodeNormalizer::description() const {
  return std::string("unicode NF") + (form_.compatibility ? "K" : "") + (form_.compose ? "C" : "D");
}

}  // namespace stretto::text
