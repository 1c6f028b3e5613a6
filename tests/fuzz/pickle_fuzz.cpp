#include <algorithm>

#include "tests/fuzz/fuzz.h"

#include "stretto/base/utf8.h"
#include "stretto/weights/pickle.h"

// Input: the pickle of an untrusted pytorch_model.bin.
namespace stretto::fuzz {
namespace {

using namespace std::string_literals;

std::string text_of(const std::string& text) {
  return "X"s + static_cast<char>(text.size()) + "\0\0\0"s + text;
}

std::string tensor_of(const std::string& name, const std::string& shape, const std::string& strides) {
  return text_of(name) + "ctorch._utils\n_rebuild_tensor_v2\n((" + text_of("storage") +
         "ctorch\nHalfStorage\n" + text_of("0") + text_of("cpu") + "K\6tQK\0"s + shape + strides +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string dict =
      "\x80\x02"
      "ccollections\nOrderedDict\nq\1)Rq\2(";
  const std::string one = tensor_of("a", "K\2K\3\x86"s, "K\3K\1\x86"s);
  const std::string parameter =
      text_of("p") + "ctorch._utils\n_rebuild_parameter\n(" + one.substr(6) + "\x88h\1)RtR";
  return {dict + one + "u.", dict + one + tensor_of("b", ")", ")") + "u}" + text_of("_metadata") + "h\2sb.",
          dict + parameter + "u.", "\x80\x02}."};
}

void run(const std::string& input) {
  for (const auto& [name, tensor] : weights::read_pickled_tensors(input, "fuzz.bin")) {
    require(is_utf8(name), "names are UTF-8");
    require(tensor.shape.size() == tensor.strides.size(), "a stride per axis");
    int64_t last = tensor.offset;
    bool empty = false;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      empty = empty || tensor.shape[i] == 0;
      last += std::max<int64_t>(0, tensor.shape[i] - 1) * tensor.strides[i];
    }
    require(empty || (last >= 0 && last < tensor.storage_size), "a tensor lies within its storage");
  }
}

}  // namespace stretto::fuzz
