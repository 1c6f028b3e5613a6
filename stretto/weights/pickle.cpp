#include "stretto/weights/pickle.h"

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/region.h"
#include "stretto/base/utf8.h"

namespace stretto::weights {
namespace {

// The functions and types that torch.save refers to by name.
enum class Known { ordered_dict, rebuild_tensor, rebuild_parameter, storage };

struct Global {
  const char* name;
  Known known;
  const char* dtype = "";
};
constexpr std::array globals = {Global{"collections.OrderedDict", Known::ordered_dict},
                                Global{"torch._utils._rebuild_tensor_v2", Known::rebuild_tensor},
                                Global{"torch._utils._rebuild_parameter", Known::rebuild_parameter},
                                Global{"torch.DoubleStorage", Known::storage, "F64"},
                                Global{"torch.FloatStorage", Known::storage, "F32"},
                                Global{"torch.HalfStorage", Known::storage, "F16"},
                                Global{"torch.BFloat16Storage", Known::storage, "BF16"},
                                Global{"torch.LongStorage", Known::storage, "I64"},
                                Global{"torch.IntStorage", Known::storage, "I32"},
                                Global{"torch.ShortStorage", Known::storage, "I16"},
                                Global{"torch.CharStorage", Known::storage, "I8"},
                                Global{"torch.ByteStorage", Known::storage, "U8"},
                                Global{"torch.BoolStorage", Known::storage, "BOOL"}};

struct Value {
  enum class Kind { other, integer, text, list, dict, global, storage, tensor, mark };
  Kind kind = Kind::other;
  int64_t integer = 0;
  std::string text = {};
  std::vector<Value*> items = {};  // of a list or tuple; of a dictionary keys and values in turn
  const Global* global = nullptr;
  PickledTensor tensor = {};  // of a storage its name, dtype and size
};

// Executes the opcodes of pickle that torch.save uses (Python's pickletools describes them). The machine owns
// the values, so that a list may contain itself.
class Machine {
 public:
  Machine(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::map<std::string, PickledTensor> run() {
    while (step()) {
    }
    const Value& top = pop(Value::Kind::dict, "a dictionary of tensors at the end");
    std::map<std::string, PickledTensor> tensors;
    for (size_t i = 0; i + 1 < top.items.size(); i += 2) {
      const Value &key = *top.items[i], &value = *top.items[i + 1];
      if (key.kind != Value::Kind::text) fail("a key that is not a text; expected names of tensors");
      if (value.kind != Value::Kind::tensor)
        fail(fmt::format(
            "\"{}\" is not a tensor; expected a state_dict, as torch.save(model.state_dict()) writes it",
            key.text));
      tensors.insert_or_assign(key.text, value.tensor);
    }
    return tensors;
  }

 private:
  using Kind = Value::Kind;

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError("{}: data.pkl, byte {}: {}", file_, opcode_at_, what);
  }

  std::string_view take(size_t count) {
    if (count > bytes_.size() - at_) fail("the pickle ends here; the file was cut short or is damaged");
    const std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }

  uint64_t unsigned_of(size_t count) {
    uint64_t value = 0;
    const std::string_view part = take(count);
    for (size_t i = 0; i < count; ++i)
      value |= static_cast<uint64_t>(static_cast<unsigned char>(part[i])) << (8 * i);
    return value;
  }

  // Python's pickle refuses other bytes too.
  std::string_view require_utf8(std::string_view text) const {
    if (!is_utf8(text)) fail("a text that is not UTF-8; the file is damaged, copy it again");
    return text;
  }

  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos)
      fail("the pickle ends within a name; the file was cut short or is damaged");
    const std::string_view text = require_utf8(take(end - at_));
    take(1);
    return text;
  }

  Value& push(Value value) {
    values_.push_back(std::move(value));
    stack_.push_back(&values_.back());
    return values_.back();
  }
  void push_integer(int64_t integer) { push({.kind = Kind::integer, .integer = integer}); }
  void push_text(std::string_view text) {
    push({.kind = Kind::text, .text = std::string(require_utf8(text))});
  }

  Value& pop() {
    if (stack_.empty() || stack_.back()->kind == Kind::mark) fail("a value is missing; the file is damaged");
    Value& value = *stack_.back();
    stack_.pop_back();
    return value;
  }
  Value& pop(Kind kind, const char* expected) {
    Value& value = pop();
    if (value.kind != kind) fail(fmt::format("expected {}", expected));
    return value;
  }
  Value& top(Kind kind, const char* expected) {
    if (stack_.empty() || stack_.back()->kind != kind) fail(fmt::format("expected {}", expected));
    return *stack_.back();
  }

  std::vector<Value*> pop_to_mark() {
    size_t begin = stack_.size();
    while (begin > 0 && stack_[begin - 1]->kind != Kind::mark) --begin;
    if (begin == 0) fail("a mark is missing; the file is damaged");
    std::vector<Value*> items(stack_.begin() + static_cast<ptrdiff_t>(begin), stack_.end());
    stack_.resize(begin - 1);
    return items;
  }

  void push_tuple(size_t size) {
    Value tuple{.kind = Kind::list};
    tuple.items.resize(size);
    for (size_t i = size; i > 0; --i) tuple.items[i - 1] = &pop();
    push(std::move(tuple));
  }

  void push_global(const std::string& name) {
    for (const Global& global : globals) {
      if (name == global.name) return void(push({.kind = Kind::global, .global = &global}));
    }
    fail(fmt::format(
        "it refers to \"{}\", which could run code and is refused; only tensors are read: convert the folder with transformers' save_pretrained, if you trust it",
        cut_utf8(name, 80)));
  }

  void remember(uint64_t key) {
    if (stack_.empty()) fail("a value is missing; the file is damaged");
    memo_[key] = stack_.back();
  }
  void recall(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail("a reference to a value that is not there; the file is damaged");
    stack_.push_back(found->second);
  }

  int64_t integer_of(const Value& value, const char* what) const {
    if (value.kind != Kind::integer || value.integer < 0)
      fail(fmt::format("{} is not a number from 0", what));
    return value.integer;
  }

  std::vector<int64_t> integers_of(const Value& value, const char* what) const {
    if (value.kind != Kind::list) fail(fmt::format("{} is not a list of numbers", what));
    std::vector<int64_t> numbers;
    for (const Value* item : value.items) numbers.push_back(integer_of(*item, what));
    return numbers;
  }

  // ("storage", type, name, device, size)
  void push_storage(const Value& id) {
    const auto& items = id.items;
    const bool fits = id.kind == Kind::list && items.size() == 5 && items[0]->kind == Kind::text &&
                      items[0]->text == "storage" && items[1]->kind == Kind::global &&
                      items[1]->global->known == Known::storage && items[2]->kind == Kind::text;
    if (!fits) fail("a reference that is not to the storage of a tensor");
    Value storage{.kind = Kind::storage};
    storage.tensor.storage = items[2]->text;
    storage.tensor.dtype = items[1]->global->dtype;
    storage.tensor.storage_size = integer_of(*items[4], "the size of a storage");
    push(std::move(storage));
  }

  // All elements must be inside the storage, and not more than it has.
  void check_within_storage(const PickledTensor& tensor) const {
    const auto elements = checked_elements(tensor.shape);
    const int64_t count = elements.value_or(0);
    int64_t last = tensor.offset;
    bool overflows = !elements;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      int64_t step = 0;
      overflows |=
          __builtin_mul_overflow(std::max<int64_t>(0, tensor.shape[i] - 1), tensor.strides[i], &step);
      overflows |= __builtin_add_overflow(last, step, &last);
    }
    const bool within = count == 0 ? tensor.offset <= tensor.storage_size : last < tensor.storage_size;
    if (overflows || !within || count > tensor.storage_size) {
      fail(fmt::format("a tensor of {} elements from element {} on does not lie within its storage of {}",
                       overflows ? "too many" : std::to_string(count), tensor.offset, tensor.storage_size));
    }
  }

  // (storage, offset, shape, strides, ...)
  void push_tensor(const std::vector<Value*>& arguments) {
    constexpr size_t least = 4, most_axes = 64;
    if (arguments.size() < least || arguments[0]->kind != Kind::storage) fail("a tensor without a storage");
    Value value{.kind = Kind::tensor, .tensor = arguments[0]->tensor};
    value.tensor.offset = integer_of(*arguments[1], "the offset of a tensor");
    value.tensor.shape = integers_of(*arguments[2], "the shape of a tensor");
    value.tensor.strides = integers_of(*arguments[3], "the strides of a tensor");
    if (value.tensor.shape.size() != value.tensor.strides.size() || value.tensor.shape.size() > most_axes)
      fail("a tensor whose shape and strides do not fit");
    check_within_storage(value.tensor);
    push(std::move(value));
  }

  void reduce() {
    const Value& arguments = pop(Kind::list, "a tuple of arguments");
    const Value& called = pop(Kind::global, "a function");
    switch (called.global->known) {
      case Known::ordered_dict:
        if (!arguments.items.empty()) fail("a dictionary with arguments; expected none");
        push({.kind = Kind::dict});
        return;
      case Known::rebuild_tensor:
        return push_tensor(arguments.items);
      case Known::rebuild_parameter:
        if (arguments.items.empty() || arguments.items[0]->kind != Kind::tensor)
          fail("a parameter without a tensor");
        stack_.push_back(arguments.items[0]);
        return;
      case Known::storage:
        break;
    }
    fail(fmt::format("\"{}\" is called as a function", called.global->name));
  }

  void set_items(const std::vector<Value*>& items) {
    Value& dict = top(Kind::dict, "a dictionary");
    if (items.size() % 2 != 0) fail("a key without a value; the file is damaged");
    dict.items.insert(dict.items.end(), items.begin(), items.end());
  }

  void append_items(const std::vector<Value*>& items) {
    Value& list = top(Kind::list, "a list");
    list.items.insert(list.items.end(), items.begin(), items.end());
  }

  bool step();

  std::string_view bytes_;
  const std::string& file_;
  size_t at_ = 0, opcode_at_ = 0;
  std::deque<Value> values_;
  std::vector<Value*> stack_;
  std::unordered_map<uint64_t, Value*> memo_;
};

// Executes one opcode; returns false after the last.
bool Machine::step() {
  opcode_at_ = at_;
  const auto opcode = static_cast<unsigned char>(take(1).front());
  switch (opcode) {
    case 0x80:  // PROTO
      take(1);
      return true;
    case 0x95:  // FRAME
      take(8);
      return true;
    case '.':
      return false;
    case '(':
      push({.kind = Kind::mark});
      return true;
    case 'N':
    case 0x88:
    case 0x89:
      push({});
      return true;
    case 'K':
      push_integer(static_cast<int64_t>(unsigned_of(1)));
      return true;
    case 'M':
      push_integer(static_cast<int64_t>(unsigned_of(2)));
      return true;
    case 'J':
      push_integer(static_cast<int32_t>(unsigned_of(4)));
      return true;
    case 0x8A: {  // LONG1: two's complement
      const size_t size = unsigned_of(1);
      if (size > 8) fail("a number of more than 64 bits");
      const uint64_t value = unsigned_of(size);
      const unsigned unused = 64 - 8 * static_cast<unsigned>(size);
      push_integer(size == 0 ? 0 : static_cast<int64_t>(value << unused) >> unused);
      return true;
    }
    case 'G':  // BINFLOAT
      take(8);
      push({});
      return true;
    case 'X':
      push_text(take(unsigned_of(4)));
      return true;
    case 0x8C:
      push_text(take(unsigned_of(1)));
      return true;
    case 0x8D:
      push_text(take(unsigned_of(8)));
      return true;
    case ']':
    case ')':
      push({.kind = Kind::list});
      return true;
    case '}':
      push({.kind = Kind::dict});
      return true;
    case 't':
    case 'l': {
      auto items = pop_to_mark();
      push({.kind = Kind::list, .items = std::move(items)});
      return true;
    }
    case 0x85:
    case 0x86:
    case 0x87:
      push_tuple(opcode - 0x84);
      return true;
    case 'a': {
      Value& item = pop();
      append_items({&item});
      return true;
    }
    case 'e':
      append_items(pop_to_mark());
      return true;
    case 's': {
      Value& value = pop();
      Value& key = pop();
      set_items({&key, &value});
      return true;
    }
    case 'u':
      set_items(pop_to_mark());
      return true;
    case 'q':
      remember(unsigned_of(1));
      return true;
    case 'r':
      remember(unsigned_of(4));
      return true;
    case 0x94:  // MEMOIZE
      remember(memo_.size());
      return true;
    case 'h':
      recall(unsigned_of(1));
      return true;
    case 'j':
      recall(unsigned_of(4));
      return true;
    case 'c': {
      const std::string module(line());
      push_global(module + "." + std::string(line()));
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const Value& name = pop(Kind::text, "a name");
      const Value& module = pop(Kind::text, "the name of a module");
      push_global(module.text + "." + name.text);
      return true;
    }
    case 'Q':
      push_storage(pop());
      return true;
    case 'R':
      reduce();
      return true;
    case 'b':  // BUILD: attributes of the dictionary (_metadata)
      pop();
      top(Kind::dict, "a dictionary with attributes");
      return true;
    default:
      fail(fmt::format(
          "the opcode 0x{:02x} is not one that torch.save writes for tensors; the file is damaged, or holds something else",
          opcode));
  }
}

}  // namespace

std::map<std::string, PickledTensor> read_pickled_tensors(std::string_view pickle, const std::string& file) {
  return Machine(pickle, file).run();
}

}  // namespace stretto::weights
